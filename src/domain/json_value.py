"""The JSON data model as types, for values that cross the service unchanged (tool arguments, schemas, metadata)."""

from typing import TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]


def size_within(value: JsonValue, limit: int, *, per_element: int = 2) -> int:
    """The characters of all texts in a value, names too, and `per_element` for everything else: at most what it takes as JSON, if
    that is 2. Beyond `limit` it is not counted on, however often parts of the value stand in it."""
    size = 0
    waiting: list[JsonValue] = [value]
    while waiting and size <= limit:
        one = waiting.pop()
        size += per_element
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            size += sum(map(len, one))
            waiting += one.values()
    return size
