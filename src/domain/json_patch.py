"""JSON Patch (RFC 6902) over JSON values, with bounds on what a patch may make of a document."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import cast

from domain.json_value import JsonObject, JsonValue, canonical_json

MAX_DEPTH = 100
"""Levels of a patched document."""
_HANDLED = 4
"""A patch may add, compare and move as many bytes as so many documents of the largest size."""


class PatchFault(Exception):
    """The patch does not apply; the message says why."""


def patched(document: JsonValue, patch: Sequence[JsonObject], *, max_bytes: int) -> JsonValue:
    """A new document with all operations, in order. Raises PatchFault; then none of them applies.

    - The result has at most `max_bytes` as JSON, and `MAX_DEPTH` levels.
    - The root cannot be removed. Names by which JavaScript reaches prototypes are refused, as its
      libraries do."""
    if _depth(document) > MAX_DEPTH:
        raise PatchFault(f"the document has more than {MAX_DEPTH} levels")
    work = _Patching(_copy(document), _HANDLED * max_bytes)
    for index, operation in enumerate(patch):
        try:
            work.apply(operation)
        except PatchFault as fault:
            raise PatchFault(f"operation {index}: {fault}") from None
    if _size(work.document) > max_bytes:
        raise PatchFault(f"the document would have more than {max_bytes} bytes")
    return work.document


class _Patching:
    """The document while its operations are applied. `spare` bytes may still be handled."""

    def __init__(self, document: JsonValue, spare: int) -> None:
        self.document = document
        self._spare = spare

    def apply(self, operation: JsonObject) -> None:
        path = _tokens(operation, "path")
        match operation.get("op"):
            case "add":
                self._add(path, self._handled(_value(operation)))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, self._handled(_value(operation)))
            case "move":
                source = _tokens(operation, "from")
                if path[: len(source)] == source and path != source:
                    raise PatchFault("a value cannot be moved into itself")
                moved = self._handled(self._at(source))
                if path != source:
                    self._remove(source)
                    self._add(path, moved)
            case "copy":
                self._add(path, self._handled(self._at(_tokens(operation, "from"))))
            case "test":
                if not _equal(self._at(path), self._handled(_value(operation))):
                    raise PatchFault(f"{operation['path']!r} has another value")
            case _:
                raise PatchFault("`op` must be add, remove, replace, move, copy or test")

    def _handled(self, value: JsonValue) -> JsonValue:
        """A copy of the value."""
        if _depth(value) > MAX_DEPTH:
            raise PatchFault(f"the value has more than {MAX_DEPTH} levels")
        self._spare -= _size(value)
        if self._spare < 0:
            raise PatchFault("the patch is too large")
        return _copy(value)

    def _add(self, path: list[str], value: JsonValue) -> None:
        if len(path) + _depth(value) > MAX_DEPTH:
            raise PatchFault(f"the document would have more than {MAX_DEPTH} levels")
        if not path:
            self.document = value
            return
        parent = self._at(path[:-1])
        if isinstance(parent, dict):
            parent[path[-1]] = value
        elif isinstance(parent, list):
            parent.insert(len(parent) if path[-1] == "-" else _index(path[-1], len(parent) + 1), value)
        else:
            raise PatchFault("the parent of the path is neither an object nor an array")

    def _replace(self, path: list[str], value: JsonValue) -> None:
        self._at(path)
        if path and isinstance(parent := self._at(path[:-1]), list):
            parent[_index(path[-1], len(parent))] = value
        else:
            self._add(path, value)

    def _remove(self, path: list[str]) -> None:
        if not path:
            raise PatchFault("the whole document cannot be removed")
        self._at(path)
        parent = self._at(path[:-1])
        if isinstance(parent, dict):
            del parent[path[-1]]
        else:
            here = cast("list[JsonValue]", parent)
            del here[_index(path[-1], len(here))]

    def _at(self, path: list[str]) -> JsonValue:
        found = self.document
        for token in path:
            if isinstance(found, dict) and token in found:
                found = found[token]
            elif isinstance(found, list):
                found = found[_index(token, len(found))]
            else:
                raise PatchFault(f"the path has nothing at {token!r}")
        return found


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise PatchFault("`value` is missing")
    return operation["value"]


def _tokens(operation: JsonObject, name: str) -> list[str]:
    """The parts of a JSON Pointer (RFC 6901)."""
    pointer = operation.get(name)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchFault(f'`{name}` must be "" or begin with "/"')
    if "~" in pointer.replace("~0", "").replace("~1", ""):
        raise PatchFault(f'`{name}` has a "~" that is neither "~0" nor "~1"')
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    if "__proto__" in tokens or ("constructor", "prototype") in pairwise(tokens):
        raise PatchFault(f"`{name}` names a prototype of JavaScript")
    if len(tokens) > MAX_DEPTH:
        raise PatchFault(f"`{name}` has more than {MAX_DEPTH} levels")
    return tokens


def _index(token: str, length: int) -> int:
    if not (token.isascii() and token.isdigit() and len(token) < 10 and (token == "0" or token[0] != "0")):
        raise PatchFault(f"{token!r} is no index of an array")
    if int(token) >= length:
        raise PatchFault(f"the index {token} is beyond the array")
    return int(token)


def _equal(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON: `true` is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _depth(value: JsonValue) -> int:
    """Levels of objects and arrays, at most one more than `MAX_DEPTH`."""
    levels, level = 0, [value]
    while level and levels <= MAX_DEPTH:
        below: list[JsonValue] = []
        for one in level:
            if isinstance(one, (dict, list)):
                below += one.values() if isinstance(one, dict) else one
        levels += any(isinstance(one, (dict, list)) for one in level)
        level = below
    return levels


def _size(value: JsonValue) -> int:
    return len(canonical_json(value).encode("utf-8", "surrogatepass"))


def _copy(value: JsonValue) -> JsonValue:
    return cast(JsonValue, json.loads(json.dumps(value)))
