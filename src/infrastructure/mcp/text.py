"""Text from servers, made fit to be stored and shown. Pure."""

import re

from domain.json_value import JsonValue

# Everything a terminal or a model could trip over: C0 without tab and newline, DEL, C1.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """Without control characters (newline and tab stay), halves of surrogate pairs replaced by U+FFFD."""
    if text.isprintable():  # decided in C, and true of most lines
        return text
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", _CONTROL.sub("", text))


def clean_value(value: JsonValue) -> JsonValue:
    """A JSON value with all its texts and keys cleaned."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(key): clean_value(item) for key, item in value.items()}
        case list():
            return [clean_value(item) for item in value]
        case _:
            return value


def capped(text: str, max_characters: int) -> str:
    """The text, or its beginning with a mark where it was cut."""
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"
