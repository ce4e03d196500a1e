"""The JSON data model as types, for values that cross the service unchanged (tool arguments, schemas, metadata)."""

from typing import TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]
