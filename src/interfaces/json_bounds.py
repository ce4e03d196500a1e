"""Bounds on JSON from clients: number of values and depth of nesting. A byte limit is not
enough: ten megabytes can hold five million values."""

from domain.json_value import JsonValue

MAX_VALUES = 100_000
"""Most values in one body. Names of fields are not counted."""
MAX_DEPTH = 128


def has_too_many_values(body: bytes) -> bool:
    """Whether JSON has more than MAX_VALUES values. It counts bytes in C, without decoding."""
    if len(body) <= MAX_VALUES:
        return False
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in body else body
    if plain.count(b'"') > 4 * MAX_VALUES:  # two for a string, two for its name
        return True
    outside = b'"'.join(plain.split(b'"')[::2])
    # Each value except the first follows a comma, or is the first of its list or object.
    empty = outside.count(b"[]") + outside.count(b"{}")
    return outside.count(b",") + outside.count(b"[") + outside.count(b"{") - empty >= MAX_VALUES


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
