"""Fills templates without blocking the event loop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from application.workflows.ports import Expressions
from domain.json_value import JsonValue, size_within
from domain.workflows.templates import MAX_FILLED, FilledTooLarge, Found, Reference, references, rendered

_T = TypeVar("_T")
_SMALL = 128 * 1024
"""Values up to this many characters are processed without a thread."""


async def looked_up(templates: Iterable[JsonValue], values: Mapping[str, JsonValue], expressions: Expressions) -> Found:
    """The values of the templates' references; a missing one is null. Raises ExpressionFailed,
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
    """The result of work on values: in a thread if they are large."""
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
