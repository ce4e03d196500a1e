"""Reads a node's configuration field by field: validates types and records faults with their
paths."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from domain.json_value import JsonObject, JsonValue
from domain.nearest import nearest
from domain.workflows.templates import INPUTS, Placed, Reference, Unreadable, placeholders

MAX_UNKNOWN_FIELDS = 20
_MAX_TEXT = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFault:
    """A fault at a path within the configuration."""

    path: str
    message: str


@dataclass(slots=True)
class ConfigReader:
    """Collects faults and the values that other components must check: references to nodes,
    JMESPath expressions, JSON Schemas and names of secrets, each with its path.

    A field that is read twice is recorded twice.
    """

    config: JsonObject
    prefix: str = ""
    faults: list[ConfigFault] = field(default_factory=list)
    references: list[tuple[str, str]] = field(default_factory=list)
    input_names: list[tuple[str, str]] = field(default_factory=list)
    expressions: list[tuple[str, str]] = field(default_factory=list)
    schemas: list[tuple[str, JsonObject]] = field(default_factory=list)
    secrets: list[tuple[str, str]] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)

    def wrong(self, path: str, message: str) -> None:
        self.faults.append(ConfigFault(path=self.prefix + path, message=message))

    def has(self, name: str) -> bool:
        """Whether the field is present and not null."""
        self._known.add(name)
        return self.config.get(name) is not None

    def text(self, name: str, *, default: str | None = None) -> str:
        """Text that is not blank; required without a default."""
        if not self.has(name):
            if default is None:
                self.wrong(name, "is required")
            return default or ""
        value = self.config[name]
        if not isinstance(value, str) or not value.strip():
            self.wrong(name, "must be text and not blank")
            return ""
        if len(value) > _MAX_TEXT:
            self.wrong(name, f"must not be longer than {_MAX_TEXT} characters")
            return ""
        if name == "expression":
            self.expressions.append((self.prefix + name, value))
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        value = self.config[name] if self.has(name) else default
        if not isinstance(value, bool):
            self.wrong(name, "must be true or false")
            return default
        return value

    def choice(self, name: str, options: Sequence[str], default: str, *, required: bool = False) -> str:
        value = self.config[name] if self.has(name) else None if required else default
        if value not in options:
            self.wrong(name, f"must be one of {', '.join(options)}")
            return default
        return str(value)

    def number(self, name: str, *, default: float | None, least: float, most: float) -> float | None:
        value = self.config[name] if self.has(name) else default
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.wrong(name, f"must be a number from {least:g} to {most:g}")
            return default
        return float(value)

    def integer(self, name: str, *, default: int, least: int, most: int) -> int:
        value = self.config[name] if self.has(name) else default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            self.wrong(name, f"must be a whole number from {least} to {most}")
            return default
        return value

    def names(self, name: str) -> tuple[str, ...] | None:
        """A list of unique texts; None if it is absent."""
        if not self.has(name):
            return None
        value = self.config[name]
        if not isinstance(value, list):
            self.wrong(name, "must be a list of names")
            return None
        entries = [entry for entry in value if isinstance(entry, str) and entry]
        if len(entries) != len(value):
            self.wrong(name, "must be a list of names")
        elif len(set(entries)) != len(entries):
            self.wrong(name, "names an entry twice")
        return tuple(entries)

    def mapping(self, name: str) -> JsonObject:
        """An object; empty if it is absent."""
        value = self.config[name] if self.has(name) else {}
        if not isinstance(value, dict):
            self.wrong_once(name, "must be an object")
            return {}
        return value

    def section(self, name: str) -> "ConfigReader | None":
        """A reader for a nested object. Its faults are recorded here."""
        if not self.has(name):
            return None
        value = self.config[name]
        if not isinstance(value, dict):
            self.wrong(name, "must be an object")
            return None
        return self._within(value, name)

    def sections(self, name: str, *, least: int, most: int) -> "list[ConfigReader]":
        """Readers for a list of objects."""
        value = self.config[name] if self.has(name) else None
        if value is None:
            self.wrong(name, "is required")
            return []
        if not isinstance(value, list) or not least <= len(value) <= most:
            self.wrong(name, f"must be a list of {least} to {most} objects")
            return []
        found = []
        for index, entry in enumerate(value):
            if isinstance(entry, dict):
                found.append(self._within(entry, f"{name}.{index}"))
            else:
                self.wrong(f"{name}.{index}", "must be an object")
        return found

    def schema(self, name: str) -> JsonObject | None:
        """A JSON Schema. It is recorded and checked elsewhere."""
        if not self.has(name):
            return None
        value = self.config[name]
        if not isinstance(value, dict):
            self.wrong(name, "must be a JSON Schema")
            return None
        self.schemas.append((self.prefix + name, {"type": "object", "properties": {"value": value}}))
        return value

    def template(self, name: str) -> JsonValue:
        """Any value with placeholders in its texts."""
        if not self.has(name):
            return None
        value = self.config[name]
        self.note_template(name, value)
        return value

    def note_template(self, path: str, template: JsonValue) -> None:
        """Record the references of a template."""
        for placed in placeholders(template, path):
            self._note(placed)
        for place in _secrets_in(template, path):
            self.wrong(place, "a secret can only be named in headers and as a bound input")

    def finish(self) -> None:
        """Record a fault for each unknown field, up to MAX_UNKNOWN_FIELDS."""
        unknown = [name for name in self.config if name not in self._known]
        for name in unknown[:MAX_UNKNOWN_FIELDS]:
            near = nearest(name, self._known)
            self.wrong(name, "is not a known field here" + (f"; did you mean {near!r}?" if near is not None else ""))
        if len(unknown) > MAX_UNKNOWN_FIELDS:
            more = len(unknown) - MAX_UNKNOWN_FIELDS
            self.wrong(unknown[MAX_UNKNOWN_FIELDS], f"is not a known field here; nor are {more - 1} others")

    def wrong_once(self, path: str, message: str) -> None:
        """Record a fault unless it is already recorded."""
        fault = ConfigFault(path=self.prefix + path, message=message)
        if fault not in self.faults:
            self.faults.append(fault)

    def _note(self, placed: Placed) -> None:
        match placed.what:
            case Unreadable(text=text):
                self.wrong(
                    placed.path, f"{_short(text)} is not a placeholder: it must be {{{{NODE}}}} or {{{{NODE.path}}}}"
                )
            case Reference(name=name, expression=expression):
                path = self.prefix + placed.path
                self.expressions.append((path, expression))
                if name == INPUTS:
                    self.input_names.append((path, _first_name(expression)))
                else:
                    self.references.append((path, name))

    def _within(self, config: JsonObject, name: str) -> "ConfigReader":
        return ConfigReader(
            config,
            f"{self.prefix}{name}.",
            self.faults,
            self.references,
            self.input_names,
            self.expressions,
            self.schemas,
            self.secrets,
        )


def _secrets_in(template: JsonValue, path: str) -> list[str]:
    match template:
        case dict():
            if set(template) == {"secret"} and isinstance(template["secret"], str):
                return [path]
            return [found for name, value in template.items() for found in _secrets_in(value, f"{path}.{name}")]
        case list():
            return [found for index, value in enumerate(template) for found in _secrets_in(value, f"{path}.{index}")]
        case _:
            return []


def _first_name(expression: str) -> str:
    """The input name at the start of a path."""
    end = next((at for at, character in enumerate(expression) if not (character.isalnum() or character == "_")), None)
    return expression if end is None else expression[:end]


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
