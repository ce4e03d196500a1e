"""Agent cards in the form that is signed: RFC 8785 (JCS), without signatures (A2A 1.0, section
8.4.1)."""

import json
import math
from collections.abc import Iterator
from decimal import Decimal

from domain.json_value import JsonObject, JsonValue

_LARGEST_EXACT = 2**53
_LARGEST_BITS = 1_023
"""A larger integer is no double."""
_MAX_DEPTH = 64
_text = json.JSONEncoder(ensure_ascii=False).encode


def canonical_forms(card: JsonObject) -> Iterator[bytes]:
    """The card as it is, and without empty values, which libraries leave out. Raises ValueError for
    a card that has no such form."""
    content = {name: value for name, value in card.items() if name != "signatures"}
    yield _canonical(content).encode()
    without_empty = _without_empty(content)
    if without_empty != content:
        yield _canonical(without_empty).encode()


def _canonical(value: JsonValue, depth: int = 0) -> str:
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    match value:
        case dict():
            named = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
            return "{" + ",".join(f"{_text(name)}:{_canonical(each, depth + 1)}" for name, each in named) + "}"
        case list():
            return "[" + ",".join(_canonical(each, depth + 1) for each in value) + "]"
        case bool() | None:
            return json.dumps(value)
        case str():
            return _text(value)
        case int() if abs(value) <= _LARGEST_EXACT:
            return str(value)
        case int() if value.bit_length() > _LARGEST_BITS:
            raise ValueError("no JSON number")
        case _:
            return _number(float(value))


def _number(value: float) -> str:
    """As ECMAScript writes it: the shortest digits, and an exponent from 1e21 on and below 1e-6."""
    if not math.isfinite(value):
        raise ValueError("no JSON number")
    if value == 0:
        return "0"
    shortest = Decimal(repr(value)).normalize()
    exponent = shortest.adjusted()
    if -7 < exponent < 21:
        return format(shortest, "f")
    sign, digits, _ = shortest.as_tuple()
    fraction = "".join(map(str, digits[1:]))
    return f"{'-' if sign else ''}{digits[0]}{'.' if fraction else ''}{fraction}e{exponent:+d}"


def _without_empty(value: JsonValue, depth: int = 0) -> JsonValue:
    if depth > _MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, dict):
        members = {name: _without_empty(each, depth + 1) for name, each in value.items()}
        return {name: each for name, each in members.items() if not _is_empty(each)}
    if isinstance(value, list):
        return [each for each in (_without_empty(each, depth + 1) for each in value) if not _is_empty(each)]
    return value


def _is_empty(value: JsonValue) -> bool:
    return value is None or value in ("", [], {})
