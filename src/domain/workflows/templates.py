"""Templates in workflow values: `{{NODE.path}}` is replaced by the output of a node; the path is
JMESPath.

A string that is a single placeholder becomes the value with its type. In longer strings, text is
inserted as it is and other values as JSON. `\\{{` is a literal brace pair. This module is purely
lexical: the caller resolves references.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from domain.json_value import JsonValue, compact_json, size_within

INPUTS = "inputs"
"""The name that refers to a component's own inputs."""

MAX_FILLED = 10 * 1024 * 1024
"""Most characters, as JSON, that all placeholders of one template may insert: the size of the
largest request body."""

_OPENING, _CLOSING, _ESCAPE = "{{", "}}", "\\"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A placeholder: `expression` is evaluated over the value of `name`; `@` is the value
    itself."""

    name: str
    expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Braces that do not enclose a name and a path."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placeholder and its location: `path` within the template."""

    path: str
    what: Reference | Unreadable


def placeholders(template: JsonValue, path: str = "") -> Iterator[Placed]:
    """Every placeholder of a template, in order."""
    match template:
        case str():
            yield from (Placed(path=path, what=part) for part in _parts(template) if not isinstance(part, str))
        case dict():
            for name, value in template.items():
                yield from placeholders(value, f"{path}.{name}" if path else name)
        case list():
            for index, value in enumerate(template):
                yield from placeholders(value, f"{path}.{index}" if path else str(index))
        case _:
            return


class FilledTooLarge(Exception):
    """A filled template is larger than MAX_FILLED."""


Found = Mapping[Reference, JsonValue]
"""The values of references; a missing one means null."""


def references(template: JsonValue) -> tuple[Reference, ...]:
    """The references of a template, each once, in order."""
    return tuple(dict.fromkeys(placed.what for placed in placeholders(template) if isinstance(placed.what, Reference)))


def rendered(template: JsonValue, found: Found) -> JsonValue:
    """The template with its placeholders replaced. Raises FilledTooLarge."""
    return _Filling(found).value(template)


def rendered_text(template: str, found: Found, quote: Callable[[str], str] = lambda text: text) -> str:
    """The template as text; `quote` is applied to each inserted value. Raises FilledTooLarge."""
    return _Filling(found).text(template, quote)


class _Filling:
    def __init__(self, found: Found) -> None:
        self._found = found
        self._room = MAX_FILLED

    def value(self, template: JsonValue) -> JsonValue:
        match template:
            case str():
                parts = list(_parts(template))
                if len(parts) == 1 and isinstance(parts[0], Reference):
                    return self._value_of(parts[0])
                return self.text(template, lambda text: text)
            case dict():
                return {name: self.value(value) for name, value in template.items()}
            case list():
                return [self.value(value) for value in template]
            case _:
                return template

    def text(self, template: str, quote: Callable[[str], str]) -> str:
        said = []
        for part in _parts(template):
            match part:
                case Reference():
                    said.append(quote(as_text(self._value_of(part))))
                case Unreadable():
                    said.append(part.text)
                case text:
                    said.append(text)
        return "".join(said)

    def _value_of(self, reference: Reference) -> JsonValue:
        found = self._found.get(reference)
        self._room -= size_within(found, self._room)
        if self._room < 0:
            raise FilledTooLarge
        return found


def as_text(value: JsonValue) -> str:
    """Text as it is, null as an empty text, everything else as compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else "".join(compact_json(value))


def _parts(template: str) -> Iterator[str | Reference | Unreadable]:
    """Plain text and the content of braces. Linear time, even for braces that never close."""
    at = 0
    while (opening := template.find(_OPENING, at)) >= 0:
        inside = opening + len(_OPENING)
        if opening > at and template[opening - 1] == _ESCAPE:
            if opening - 1 > at:
                yield template[at : opening - 1]
            yield _OPENING
            at = inside
            continue
        closing = template.find(_CLOSING, inside)
        if closing < 0:
            yield Unreadable(text=template[at:])
            return
        if opening > at:
            yield template[at:opening]
        at = closing + len(_CLOSING)
        yield _read(template[inside:closing]) or Unreadable(text=template[opening:at])
    if at < len(template):
        yield template[at:]


def _read(inside: str) -> Reference | None:
    stripped = inside.strip()
    match = _NAME.match(stripped)
    if match is None:
        return None
    name, rest = match[0], stripped[match.end() :].lstrip()
    if not rest:
        return Reference(name=name, expression="@")
    if rest[0] in "[|":
        return Reference(name=name, expression=f"@{rest}")
    return Reference(name=name, expression=rest[1:]) if rest[0] == "." and len(rest) > 1 else None
