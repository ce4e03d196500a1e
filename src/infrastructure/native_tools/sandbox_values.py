"""Converts values from the sandbox to JSON: plain data stays, everything else becomes a readable
text."""

import math
from collections.abc import Mapping
from datetime import date, datetime, time

from pydantic_monty import MontyClassProxy

from domain.json_value import JsonValue

_MAX_DEPTH = 64
_LARGEST_INT = 2**63
"""Larger integers become text, because most JSON readers would round them."""


class ValueTooLarge(Exception):
    """The value is larger than allowed."""


def as_json(value: object, *, max_bytes: int) -> JsonValue:
    """The JSON form of the code's result. Raises ValueTooLarge above about `max_bytes`."""
    return _Conversion(max_bytes).convert(value, 0)


class _Conversion:
    """One conversion. It counts while converting, so that a huge value costs no more than the
    limit."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes

    def convert(self, value: object, depth: int) -> JsonValue:
        if value is None or isinstance(value, bool | int | float):
            return self._number(value)
        if isinstance(value, str):
            return self._text(value)
        if depth >= _MAX_DEPTH:
            return self._text("…")
        if isinstance(value, Mapping):
            return {self._key(key): self.convert(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self.convert(inner, depth + 1) for inner in value]
        if isinstance(value, MontyClassProxy):
            attributes = self.convert(value.attributes, depth + 1)
            return {"class": self._text(value.name), "attributes": attributes}
        return self._text(_described(value))

    def _number(self, value: int | float | None) -> JsonValue:
        self._spend(8)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _LARGEST_INT:
            return self._text(_digits(value))
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value

    def _key(self, key: object) -> str:
        return self._text(key if isinstance(key, str) else str(self.convert(key, _MAX_DEPTH - 1)))

    def _text(self, text: str) -> str:
        self._spend(len(text) + 2)
        return text

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ValueTooLarge


def _described(value: object) -> str:
    match value:
        case bytes():
            return value.decode(errors="backslashreplace")
        case datetime() | date() | time():
            return value.isoformat()
        case BaseException():
            return f"{type(value).__name__}: {value}"
        case type():
            return value.__name__
        case _:
            return str(value)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:  # Python's own guard against slow conversions
        return f"an integer of {value.bit_length()} bits"
