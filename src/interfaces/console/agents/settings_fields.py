"""The fields of model settings: from an agent, and as the API's body."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields

from domain.json_value import JsonObject, JsonValue
from domain.runs.model_settings import CacheTtl, Effort, ModelSettings, Verbosity
from interfaces.console.form_values import FormValues, fields_of, joined, text

PREFIX = "model_settings"
_NAMES = tuple(field.name for field in fields(ModelSettings))
_WHOLE, _NUMBERS = fields_of(ModelSettings, int | None), fields_of(ModelSettings, float | None)
_YES_NO, _LINES = fields_of(ModelSettings, bool | None), fields_of(ModelSettings, tuple[str, ...] | None)
_JSON = fields_of(ModelSettings, JsonObject | None)


def _options(values: Iterable[str]) -> list[tuple[str, str]]:
    return [("", "not set"), *((value, value) for value in values)]


CHOICES = {
    "effort": _options(Effort),
    "verbosity": _options(Verbosity),
    "cache_ttl": _options(CacheTtl),
    "parallel_tool_calls": _options(("yes", "no")),
}


def settings_values(settings: Mapping[str, JsonValue]) -> dict[str, str]:
    return {f"{PREFIX}.{name}": _text(value) for name, value in settings.items()}


def settings_body(form: FormValues) -> JsonObject:
    """What is set. Unreadable fields are in `form.wrong`."""
    values = {name: _value(form, name) for name in _NAMES}
    return {name: value for name, value in values.items() if value is not None}


def _text(value: JsonValue) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            return joined([str(entry) for entry in value])
        case dict():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return text(value)


def _value(form: FormValues, name: str) -> JsonValue:
    field = f"{PREFIX}.{name}"
    if name in _WHOLE:
        return form.whole(field)
    if name in _NUMBERS:
        return form.number(field)
    if name in _YES_NO:
        return {"yes": True, "no": False}.get(form[field])
    if name in _LINES:
        return form.lines(field) or None
    return form.json_object(field) if name in _JSON else form[field].strip() or None
