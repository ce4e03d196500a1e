"""`FIELD=VALUE` arguments, for commands that change fields as the API names them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import fields as fields_of

from domain.json_value import JsonObject, JsonValue
from domain.nearest import nearest
from domain.runs.model_settings import ModelSettings
from interfaces.cli.failures import BadUsage

_MAX_NAME = 40
_SETTINGS = tuple(field.name for field in fields_of(ModelSettings))
_SETTINGS_TEXTS = frozenset({"effort", "verbosity", "service_tier", "cache_ttl"})


def field_values(
    entries: Sequence[str], *, texts: Collection[str], may_be_null: Collection[str] = (), fields: Collection[str] = ()
) -> JsonObject:
    """The fields. A value is JSON, otherwise text; of `texts` it is always text, or null where it
    may be. `fields` are all that there are, if they are known. Raises BadUsage."""
    return dict(_field(entry, texts, may_be_null, fields) for entry in entries)


def model_settings(entries: Sequence[str]) -> JsonObject:
    """Model settings given as NAME=VALUE. Raises BadUsage."""
    return field_values(entries, texts=_SETTINGS_TEXTS, may_be_null=_SETTINGS_TEXTS, fields=_SETTINGS)


def _field(
    entry: str, texts: Collection[str], may_be_null: Collection[str], fields: Collection[str]
) -> tuple[str, JsonValue]:
    name, separator, text = entry.partition("=")
    if not separator or not name:
        raise BadUsage(f"Fields are FIELD=VALUE, such as name=value, not {entry[:40]!r}.")
    if fields and name not in fields:
        near = nearest(name, fields) if len(name) <= _MAX_NAME else None
        meant = "" if near is None else f" Did you mean {near!r}?"
        raise BadUsage(f"There is no field {name[:_MAX_NAME]!r}; the fields are {', '.join(sorted(fields))}.{meant}")
    if name in texts:
        return name, None if text == "null" and name in may_be_null else text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        value = text
    return name, value
