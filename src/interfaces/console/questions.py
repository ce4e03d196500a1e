"""JSON Schemas of objects as forms: fields for questions of MCP servers and arguments of tools, and
the value from the fields."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.hidden_text import hides_text, revealed_json
from domain.json_value import JsonObject, JsonValue
from interfaces.console.json_text import JsonTextError, json_of

_INPUT_TYPES = {"email": "email", "uri": "url", "date": "date"}
_YES = "yes"
_LISTED: Mapping[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}
"""Types of entries that are written one in a line, and their values."""
_LINE = 80
"""Longer texts have a field of several lines."""
_DEPTH = 4
"""Objects within objects that have fields; deeper ones are JSON."""
_VALID = {
    "number": re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?"),
    "email": re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)*"),
    "url": re.compile(r"https?://[A-Za-z0-9.-]+(?:[/?#][!-~]*)?"),
}
"""Values that an input of the type takes, and sends as they are."""


class FieldKind(StrEnum):
    """The input of a field. `lines` is for lists of texts or numbers, one in each line; `group` has
    the fields of an object. `json` is for types without a form field: the person writes JSON."""

    TEXT = "text"
    NUMBER = "number"
    YES_NO = "yes_no"
    ONE_OF = "one_of"
    SOME_OF = "some_of"
    LINES = "lines"
    GROUP = "group"
    JSON = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A choice. `name` is its form name where several may be chosen."""

    value: str
    title: str
    name: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A property of the answer (MCP: `PrimitiveSchemaDefinition`), or of an object in it. Its form
    `name` is generated: names from a server appear only as escaped text. `path` are the keys that
    lead to it, with dots."""

    name: str
    key: str
    path: str
    kind: FieldKind
    title: str
    description: str
    required: bool
    schema: JsonObject
    options: tuple[Option, ...] = ()
    fields: "tuple[Field, ...]" = ()

    @property
    def input_type(self) -> str:
        """`text` for an initial value that a browser would send in another spelling, or not at
        all."""
        wanted = "number" if self.kind is FieldKind.NUMBER else _INPUT_TYPES.get(str(self.schema.get("format")), "text")
        return wanted if not self.value or _is_sent_unchanged(wanted, self.value) else "text"

    @property
    def value(self) -> str:
        """The initial value."""
        default = self.schema.get("default")
        if self.kind is FieldKind.LINES and isinstance(default, list):
            return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in default)
        if default is None:
            return ""
        is_text = isinstance(default, str) and self.kind is not FieldKind.JSON
        return str(default) if is_text else revealed_json(json.dumps(default, ensure_ascii=False))

    @property
    def is_long(self) -> bool:
        """Whether the initial value needs several lines."""
        return self.kind is FieldKind.TEXT and (len(self.value) > _LINE or "\n" in self.value or "\r" in self.value)

    @property
    def is_set(self) -> bool:
        """Whether the box is ticked initially."""
        return self.schema.get("default") is True


def fields_of(schema: JsonObject) -> tuple[Field, ...]:
    """Fields in the schema's order."""
    return _fields(schema, names="f", path="", required=True, depth=1)


def content_of(schema: JsonObject, form: Mapping[str, str]) -> JsonObject:
    """The answer without empty fields. Raises INVALID for text that is not JSON or a number
    where one is required."""
    return _content(fields_of(schema), form)


def filled(schema: JsonObject, values: JsonObject) -> JsonObject:
    """The schema with the values as defaults; a value that it does not have is JSON."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    shown: JsonObject = {
        key: {**(_not_null(value) if isinstance(value, dict) else {}), "default": values.get(key)}
        for key, value in known.items()
    }
    return {**schema, "properties": shown | {key: {"default": values[key]} for key in values if key not in known}}


def edited(schema: JsonObject, values: JsonObject, form: Mapping[str, str]) -> JsonObject:
    """The values with what was changed in the form of the `filled` schema; an emptied field is left
    out. Raises as `content_of`."""
    return _edited(fields_of(filled(schema, values)), values, {name: _lines(text) for name, text in form.items()})


def _edited(fields: tuple[Field, ...], values: JsonObject, form: Mapping[str, str]) -> JsonObject:
    result = dict(values)
    for field in fields:
        entered = _value(field, form)
        if entered == _value(field, _unchanged(field)):
            continue
        before = values.get(field.key)
        if entered is None:
            result.pop(field.key, None)
        elif field.kind is FieldKind.GROUP and isinstance(before, dict):
            result[field.key] = _edited(field.fields, before, form)
        else:
            result[field.key] = entered
    return result


def _unchanged(field: Field) -> dict[str, str]:
    """What the form sends if nothing is entered."""
    if field.kind is FieldKind.YES_NO:
        return {field.name: _YES} if field.is_set else {}
    if field.options and field.kind is FieldKind.SOME_OF:
        return {option.name: _YES for option in field.options if option.chosen}
    if field.kind is FieldKind.GROUP:
        return {name: text for each in field.fields for name, text in _unchanged(each).items()}
    if field.kind is FieldKind.ONE_OF and not any(option.chosen for option in field.options):
        return {}
    return {field.name: _lines(field.value).replace("\r", "\n")}


def _lines(text: str) -> str:
    """The text with the ends of lines that are stored: browsers send others."""
    return text.replace("\r\n", "\n")


def _is_sent_unchanged(input_type: str, value: str) -> bool:
    if input_type != "date":
        return input_type in _VALID and _VALID[input_type].fullmatch(value) is not None
    try:
        return date.fromisoformat(value).isoformat() == value
    except ValueError:
        return False


def _fields(schema: JsonObject, *, names: str, path: str, required: bool, depth: int) -> tuple[Field, ...]:
    properties, needed = schema.get("properties"), schema.get("required")
    asked = properties if isinstance(properties, dict) else {}
    listed = needed if isinstance(needed, list) and required else []
    return tuple(
        _field(
            f"{names}{index}",
            key,
            _not_null(value) if isinstance(value, dict) else {},
            path=f"{path}{key}",
            required=key in listed,
            depth=depth,
        )
        for index, (key, value) in enumerate(asked.items())
    )


def _field(name: str, key: str, schema: JsonObject, *, path: str, required: bool, depth: int) -> Field:
    kind, choices = _kind(schema, depth)
    default = schema.get("default")
    chosen = default if isinstance(default, list) else [default]
    inner = filled(schema, default) if kind is FieldKind.GROUP and isinstance(default, dict) else schema
    return Field(
        name=name,
        key=key,
        path=path,
        kind=kind,
        title=str(schema.get("title") or key),
        description=str(schema.get("description") or ""),
        required=required,
        schema=schema,
        options=tuple(
            Option(value=value, title=title, name=f"{name}.{index}", chosen=value in chosen)
            for index, (value, title) in enumerate(choices)
        ),
        fields=_fields(inner, names=f"{name}-", path=f"{path}.", required=required, depth=depth + 1)
        if kind is FieldKind.GROUP
        else (),
    )


def _not_null(schema: JsonObject) -> JsonObject:
    """The schema without the alternative `null`, which an empty field means already."""
    types = schema.get("type")
    if isinstance(types, list):
        named = [each for each in types if each != "null"]
        return {**schema, "type": named[0]} if len(named) == 1 else schema
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and "type" not in schema:
            others = [each for each in options if isinstance(each, dict) and each.get("type") != "null"]
            if len(others) == 1 < len(options):
                return {**others[0], **{name: value for name, value in schema.items() if name != key}}
    return schema


def _kind(schema: JsonObject, depth: int) -> tuple[FieldKind, list[tuple[str, str]]]:
    match schema.get("type"):
        case "string":
            choices = _choices(schema, "oneOf")
            if hides_text(str(schema.get("default") or "")):
                return FieldKind.JSON, []  # whose escapes show what people would not see
            return (FieldKind.ONE_OF, choices) if choices else (FieldKind.TEXT, [])
        case "number" | "integer":
            return FieldKind.NUMBER, []
        case "boolean":
            return FieldKind.YES_NO, []
        case "array":
            return _kind_of_list(schema)
        case "object" if (
            depth < _DEPTH and schema.get("properties") and isinstance(schema.get("default", {}), dict | None)
        ):
            return FieldKind.GROUP, []
        case _:
            return FieldKind.JSON, []


def _kind_of_list(schema: JsonObject) -> tuple[FieldKind, list[tuple[str, str]]]:
    items = schema.get("items")
    if not isinstance(items, dict):
        return FieldKind.JSON, []
    choices = _choices(items, "anyOf")
    if choices:
        return FieldKind.SOME_OF, choices
    default = schema.get("default")
    values = default if isinstance(default, list) else [] if default is None else [default]
    wanted = _LISTED.get(str(items.get("type")), ())
    is_plain = isinstance(default, list | None) and all(_is_line(value, wanted) for value in values)
    return (FieldKind.LINES if wanted and is_plain else FieldKind.JSON), []


def _is_line(value: JsonValue, wanted: tuple[type, ...]) -> bool:
    """Whether the value is written in a line, and read from it as it is."""
    if isinstance(value, bool) or not isinstance(value, wanted):
        return False
    if not isinstance(value, str):
        return True
    return value == value.strip() != "" and len(value.splitlines()) == 1 and not hides_text(value)


def _choices(schema: JsonObject, titled: str) -> list[tuple[str, str]]:
    """Values with labels: `enum` with or without `enumNames`, or a list of `const` and `title`."""
    values, names = schema.get("enum"), schema.get("enumNames")
    if isinstance(values, list):
        titles = names if isinstance(names, list) and len(names) == len(values) else values
        return [(str(value), str(title)) for value, title in zip(values, titles, strict=True)]
    options = schema.get(titled)
    listed = [each for each in options if isinstance(each, dict)] if isinstance(options, list) else []
    return [(str(each["const"]), str(each.get("title", each["const"]))) for each in listed if "const" in each]


def _content(fields: tuple[Field, ...], form: Mapping[str, str]) -> JsonObject:
    values = ((field.key, _value(field, form)) for field in fields)
    return {key: value for key, value in values if value is not None}


def _value(field: Field, form: Mapping[str, str]) -> JsonValue:
    text = form.get(field.name, "")
    match field.kind:
        case FieldKind.YES_NO:
            return text == _YES
        case FieldKind.SOME_OF:
            return [option.value for option in field.options if form.get(option.name) == _YES]
        case FieldKind.NUMBER | FieldKind.JSON:
            return None if not text.strip() else _parsed(field, text)
        case FieldKind.LINES:
            return _listed(field, text)
        case FieldKind.GROUP:
            content = _content(field.fields, form)
            is_entered = content != _content(field.fields, {})
            is_given = field.required or isinstance(field.schema.get("default"), dict) or is_entered
            return content if is_given else None
        case _:
            return text or None


def _listed(field: Field, text: str) -> JsonValue:
    """The values in the lines, without empty ones. A required list may be empty."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return [] if field.required or isinstance(field.schema.get("default"), list) else None
    items = field.schema["items"]
    if isinstance(items, dict) and items.get("type") == "string":
        return list(lines)
    return [_parsed(field, line) for line in lines]


def _parsed(field: Field, text: str) -> JsonValue:
    wanted = {FieldKind.NUMBER: "a number", FieldKind.LINES: "a number in each line"}.get(field.kind, "JSON")
    try:
        return json_of(text)
    except JsonTextError:
        raise invalid(
            "answer_invalid", "The answer cannot be read.", Violation(path=field.path, message=f"must be {wanted}")
        ) from None
