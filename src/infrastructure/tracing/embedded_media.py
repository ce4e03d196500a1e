"""Replaces base64 files in values by their type and size.

Otherwise the Langfuse client would upload them from an unbounded queue, and the bytes would fill
the trace store.
"""

import json

from domain.json_value import JsonObject, JsonValue

_URI_SCHEME = "data:"
_URI_ENCODING = ";base64"
_TYPES = ("media_type", "mime_type", "mimeType")
_BYTES = "data"


def without_media(value: JsonValue) -> JsonValue:
    """The value with descriptions in place of data URIs and inline files. A string that is JSON is
    parsed."""
    if isinstance(value, str):
        return _text(value)
    return _nested(value)


def messages_without_media(message: JsonObject) -> JsonValue:
    """The same for a message of a prompt; strings in it are not parsed."""
    return _nested(message)


def _text(text: str) -> str:
    if not text.lstrip().startswith(("{", "[")) or (_URI_SCHEME not in text and f'"{_BYTES}"' not in text):
        return _uri(text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    described = _nested(value)
    return text if described == value else json.dumps(described, ensure_ascii=False)


def _nested(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return _uri(value)
    if isinstance(value, list):
        return [_nested(each) for each in value]
    if isinstance(value, dict):
        inner = {name: _nested(each) for name, each in value.items()}
        data = inner.get(_BYTES)
        if isinstance(data, str) and any(name in inner for name in _TYPES):
            del inner[_BYTES]
            inner["characters"] = len(data)
        return inner
    return value


def _uri(text: str) -> str:
    if not text.startswith(_URI_SCHEME):
        return text
    header, comma, content = text.partition(",")
    return f"{header} ({len(content)} characters)" if comma and header.endswith(_URI_ENCODING) else text
