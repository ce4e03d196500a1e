"""Templates with what their references stand for, without holding up the event loop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from application.workflows.ports import Expressions
from domain.json_value import JsonValue, size_within
from domain.workflows.templates import MAX_FILLED, FilledTooLarge, Found, Reference, references, rendered

_T = TypeVar("_T")
_SMALL = 128 * 1024
"""Characters that are measured and copied so fast that a thread is not worth it."""


async def looked_up(templates: Iterable[JsonValue], values: Mapping[str, JsonValue], expressions: Expressions) -> Found:
    """What the references of the templates stand for; `values` are by name, a missing one is null. Raises ExpressionFailed,
    FilledTooLarge."""
    found: dict[Reference, JsonValue] = {}
    for template in templates:
        room = MAX_FILLED
        for reference in references(template):
            if reference not in found:
                value = values.get(reference.name)
                if reference.expression != "@":
                    value = await expressions.evaluate(reference.expression, value)
                found[reference] = value
            room -= await _size(found[reference], room)
            if room < 0:
                raise FilledTooLarge
    return found


async def filled(template: JsonValue, values: Mapping[str, JsonValue], expressions: Expressions) -> JsonValue:
    """The template with its placeholders replaced. Raises ExpressionFailed, FilledTooLarge."""
    found = await looked_up((template,), values, expressions)
    return await unhurried(lambda: rendered(template, found), found.values())


async def unhurried(work: Callable[[], _T], on: Iterable[JsonValue]) -> _T:
    """The outcome of work on values: in a thread if they are large."""
    return await asyncio.to_thread(work) if _is_large(on) else work()


async def _size(value: JsonValue, room: int) -> int:
    return await unhurried(lambda: size_within(value, room), (value,))


def _is_large(values: Iterable[JsonValue]) -> bool:
    room = _SMALL
    for value in values:
        room -= size_within(value, room)
        if room < 0:
            return True
    return False
