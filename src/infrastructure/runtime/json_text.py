"""Stored JSON text, encoded and decoded by msgspec, with the standard library for what msgspec
rejects."""

import json
from typing import cast

import msgspec

from domain.json_value import JsonValue

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder()


def encode(value: JsonValue) -> str:
    """Compact JSON. Text with lone surrogates, which models produce, is escaped instead of
    rejected."""
    try:
        return _encoder.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


def decode(text: str) -> JsonValue:
    try:
        return cast(JsonValue, _decoder.decode(text))
    except msgspec.DecodeError:
        return cast(JsonValue, json.loads(text))
