"""The JSON data model as types, for values that pass through unchanged (tool arguments, schemas,
metadata)."""

import hashlib
import json
from collections.abc import Iterator
from typing import TypeAlias

JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"
JsonObject: TypeAlias = dict[str, JsonValue]

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical_json(value: JsonValue) -> str:
    """The value as canonical JSON: sorted keys, no spaces, characters as they are."""
    return _CANONICAL.encode(value)


def canonical_digest(value: JsonValue) -> str:
    """`sha256:` and hex over a value as canonical JSON in UTF-8."""
    return f"sha256:{hashlib.sha256(canonical_json(value).encode('utf-8', 'surrogatepass')).hexdigest()}"


def size_within(value: JsonValue, limit: int, *, per_element: int = 2) -> int:
    """The size of a value: the characters of all strings and keys, plus `per_element` for every
    element.

    With `per_element=2` this is at most the length of the JSON text. Counting stops beyond `limit`,
    even if a part occurs many times in the value.
    """
    size = 0
    waiting: list[JsonValue] = [value]
    while waiting and size <= limit:
        one = waiting.pop()
        size += per_element
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, list):
            if len(one) * per_element > limit - size:
                return limit + 1  # stops before looking at each of perhaps millions of elements
            waiting += one
        elif isinstance(one, dict):
            size += sum(map(len, one))
            waiting += one.values()
    return size


_PIECE = 64 * 1024
_ELEMENTS = 4_096


def compact_json(value: JsonValue) -> Iterator[str]:
    """A value as compact JSON, in pieces: encoding millions of elements at once would block all
    threads."""
    if isinstance(value, list) and size_within(value, _PIECE) > _PIECE:
        yield "["
        for start in range(0, len(value), _ELEMENTS):
            yield "," if start else ""
            yield from _elements(value[start : start + _ELEMENTS])
        yield "]"
    elif isinstance(value, dict) and size_within(value, _PIECE) > _PIECE:
        yield "{"
        for index, (name, member) in enumerate(value.items()):
            yield f"{',' if index else ''}{_dumped(name)}:"
            yield from compact_json(member)
        yield "}"
    else:
        yield _dumped(value)


def _elements(part: list[JsonValue]) -> Iterator[str]:
    if size_within(part, _PIECE) <= _PIECE:
        yield _dumped(part)[1:-1]
        return
    for index, element in enumerate(part):
        yield "," if index else ""
        yield from compact_json(element)


def _dumped(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
