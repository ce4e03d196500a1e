"""Bounds on JSON from clients: number of values and depth of nesting. A byte limit is not
enough: ten megabytes can hold five million values."""

import msgspec

from domain.json_value import JsonValue

MAX_VALUES = 100_000
"""Most values in one body. Names of fields are not counted."""
MAX_DEPTH = 128
MAX_LONG_NUMBERS = 20
"""Most numbers of at least 320 digits."""
_DIGITS = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_LONG_NUMBER = b"0" * 320


def has_too_many_values(body: bytes) -> bool:
    """Whether JSON has more than MAX_VALUES values. It counts bytes in C, without decoding."""
    if len(body) <= MAX_VALUES:
        return False
    plain = _without_escapes(body)
    if plain.count(b'"') > 4 * MAX_VALUES:  # two for a string, two for its name
        return True
    outside = _outside_strings(plain)
    # A long number takes as long as thousands of values. A regular expression would search ten
    # times as long.
    if outside.translate(_DIGITS).count(_LONG_NUMBER) > MAX_LONG_NUMBERS:
        return True
    # Each value except the first follows a comma, or is the first of its list or object.
    empty = outside.count(b"[]") + outside.count(b"{}")
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{") - empty >= MAX_VALUES


def has_repeated_names(body: bytes, value: JsonValue) -> bool:
    """Whether an object of the body has a name twice; the decoded `value` has it once."""
    return not _has_all_colons(body, value) and _names_in(value) != _colons_outside_strings(body)


def _has_all_colons(body: bytes, value: JsonValue) -> bool:
    """Whether the value, encoded, has as many colons as the body. Without escapes, a colon of the
    body separates a name, or is in a text of the value too: each name that was dropped is a colon
    less."""
    if b"\\" in body:
        return False
    try:
        return msgspec.json.encode(value).count(b":") == body.count(b":")
    except (OverflowError, RecursionError):  # of a large integer, and of deep nesting
        return False


def _names_in(value: JsonValue) -> int:
    names, level = 0, [value]
    while level:
        below: list[JsonValue] = []
        for one in level:
            if isinstance(one, dict):
                names += len(one)
                below += one.values()
            elif isinstance(one, list):
                below += one
        level = below
    return names


def _colons_outside_strings(body: bytes) -> int:
    return _outside_strings(_without_escapes(body)).count(b":")


def _without_escapes(body: bytes) -> bytes:
    return body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body


def _outside_strings(plain: bytes) -> bytes:
    return b'"'.join(plain.split(b'"')[::2])


def is_too_deep(body: bytes, value: JsonValue) -> bool:
    """Whether the decoded value is nested deeper than MAX_DEPTH."""
    # Few bodies have that many brackets.
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return False
    level: list[JsonValue] = [value]
    for _ in range(MAX_DEPTH):
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level = [one for items in inner for one in items]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)
