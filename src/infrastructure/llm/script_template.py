"""References in scripts: `{{ results.last /items/0/name | match 'v(.+)' | default 'none' }}`,
compiled once.

A reference is a source, an optional JSON pointer (RFC 6901) into it, and filters; nothing is
executed.
- Sources: `user` (the user's text), `results.last` (the run's newest tool result), `results.TOOL`
  (the newest of that tool).
- Filters: `match 'REGEX'` (first group, or the whole match), `head N` (characters), `default
  'TEXT'` (if nothing is found).
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from domain.json_value import JsonValue

_OPENING, _CLOSING = "{{", "}}"
_PARTS = re.compile(
    r"\s*(?P<source>user|results\.(?P<tool>[A-Za-z0-9_-]+))"
    r"(?:\s*(?P<pointer>/[^\s|]*))?"
    r"(?P<filters>(?:\s*\|\s*(?:match|default|head)\s+(?:'[^']*'|\"[^\"]*\"|[0-9]+))*)\s*"
)
_FILTER = re.compile(r"\|\s*(match|default|head)\s+(?:'([^']*)'|\"([^\"]*)\"|([0-9]+))")


class ScriptContext(Protocol):
    """The parts of a request that references can read."""

    @property
    def user_text(self) -> str: ...

    def result_of(self, tool: str) -> str | None:
        """The newest result of a tool, or of any for `last`; None without one in this run."""
        ...


class TemplateError(ValueError):
    """The text is not a valid reference."""


class NothingFoundError(Exception):
    """A reference finds nothing in this run; the text is the searched expression."""


@dataclass(frozen=True, slots=True)
class Reference:
    text: str
    tool: str | None
    pointer: tuple[str, ...] | None
    filters: tuple[Callable[[JsonValue], JsonValue], ...]
    default: str | None

    def resolve(self, context: ScriptContext) -> JsonValue:
        """Raises NothingFoundError."""
        try:
            value: JsonValue = context.user_text if self.tool is None else context.result_of(self.tool)
            if value is None:
                raise NothingFoundError(self.text)
            if self.pointer is not None:
                value = _pointed_at(value, self.pointer)
            for apply in self.filters:
                value = apply(value)
        except (NothingFoundError, LookupError, ValueError, TypeError) as exc:
            if self.default is not None:
                return self.default
            raise NothingFoundError(self.text) from exc
        return value


@dataclass(frozen=True, slots=True)
class Template:
    """A string with compiled references. `parts` are plain text and references in any order."""

    parts: tuple[str | Reference, ...]

    def value(self, context: ScriptContext) -> JsonValue:
        """A string; a template of a single reference has the type of its value."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Reference):
            return self.parts[0].resolve(context)
        return self.text(context)

    def text(self, context: ScriptContext) -> str:
        """The string with each reference replaced by its value as text."""
        return "".join([part if isinstance(part, str) else as_text(part.resolve(context)) for part in self.parts])


def compile_template(text: str) -> Template:
    """Raises TemplateError with the invalid reference and the expected form."""
    parts: list[str | Reference] = []
    position = 0
    while (opening := text.find(_OPENING, position)) >= 0:
        inside = opening + len(_OPENING)
        closing = text.find(_CLOSING, inside)
        if closing < 0:
            break
        if opening > position:
            parts.append(text[position:opening])
        parts.append(_compile_reference(text[inside:closing]))
        position = closing + len(_CLOSING)
    if position < len(text) or not parts:
        parts.append(text[position:])
    return Template(tuple(parts))


def as_text(value: JsonValue) -> str:
    """Strings unchanged, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _compile_reference(text: str) -> Reference:
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise TemplateError(
            f"{{{{{text}}}}} is not a reference; write user, results.last or results.TOOL,"
            " then perhaps /a/json/pointer and | match 'REGEX', | head N, | default 'TEXT'"
        )
    default: str | None = None
    filters: list[Callable[[JsonValue], JsonValue]] = []
    for name, single, double, digits in _FILTER.findall(parts["filters"]):
        argument = single or double or digits
        if name == "default":
            default = argument
        else:
            filters.append(_match(argument) if name == "match" else _head(argument))
    pointer = parts["pointer"]
    return Reference(
        text=text.strip(),
        tool=parts["tool"],
        pointer=None if pointer is None else tuple(_unescaped(step) for step in pointer.split("/")[1:]),
        filters=tuple(filters),
        default=default,
    )


def _unescaped(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def _pointed_at(value: JsonValue, pointer: tuple[str, ...]) -> JsonValue:
    if isinstance(value, str):
        value = json.loads(value)
    for step in pointer:
        if isinstance(value, list):
            value = value[int(step)]
        elif isinstance(value, dict):
            value = value[step]
        else:
            raise LookupError(step)
    return value


def _match(pattern: str) -> Callable[[JsonValue], JsonValue]:
    try:
        compiled = re.compile(pattern)
    except re.error as exc:
        raise TemplateError(f"match {pattern!r} is not a regular expression") from exc

    def apply(value: JsonValue) -> JsonValue:
        found = compiled.search(as_text(value))
        if found is None or (compiled.groups and found.group(1) is None):
            raise NothingFoundError(pattern)
        return found.group(1) if compiled.groups else found.group()

    return apply


def _head(count: str) -> Callable[[JsonValue], JsonValue]:
    if not count.isdecimal():
        raise TemplateError(f"head {count!r} needs a number of characters")
    length = int(count)
    return lambda value: as_text(value)[:length]
