"""Cleans text from servers for storage and display. No I/O."""

import re

import msgspec

from domain.json_value import JsonValue

# Control characters that break terminals or models: C0 without tab and newline, DEL, C1.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SIGNS_OF_CONTROL = (b"\\u", b"\\r", b"\\b", b"\\f", b"\x7f", b"\xc2")
"""One of these is in the JSON of each text with such a character."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Remove control characters (newline and tab stay); lone surrogates become U+FFFD."""
    if text.isprintable() or text.replace("\n", "").replace("\t", "").isprintable():  # in C, true for nearly all
        return text
    return without_halves(_CONTROL.sub("", text))


def without_halves(text: str) -> str:
    """Lone surrogates become U+FFFD."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def clean_value(value: JsonValue) -> JsonValue:
    """The value with each text and key cleaned."""
    match value:
        case str():
            return clean(value)
        case dict() | list():
            return value if _is_clean(value) else _cleaned(value)
        case _:
            return value


def _is_clean(value: JsonValue) -> bool:
    """False if it may not be. In C, since large values would hold the event loop otherwise."""
    try:
        encoded = msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return False
    return not any(sign in encoded for sign in _SIGNS_OF_CONTROL)


def _cleaned(value: JsonValue) -> JsonValue:
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(key): _cleaned(item) for key, item in value.items()}
        case list():
            return [_cleaned(item) for item in value]
        case _:
            return value


def capped(text: str, max_characters: int) -> str:
    """The text, truncated with a mark."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"
