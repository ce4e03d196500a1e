"""JSON of providers with faults that do not hide what is meant: lone surrogates, invalid UTF-8."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec

Value = TypeVar("Value")

_HIGH, _LOW = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE = re.compile(rb"(?P<whole>%b%b)|(?P<lone>%b|%b)|\\." % (_HIGH, _LOW, _HIGH, _LOW), re.DOTALL)


def decoded(decode: Callable[[bytes], Value], data: bytes) -> Value:
    """Decode; data with such faults is decoded with U+FFFD in their places. Raises
    msgspec.MsgspecError and RecursionError."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise
    except ValueError:  # of msgspec, and UnicodeDecodeError
        return decode(repaired(data))


def repaired(data: bytes) -> bytes:
    """The JSON text without lone surrogates and invalid UTF-8."""
    if b"\\u" not in data and data.isascii():
        return data
    return _ESCAPE.sub(_without_lone_surrogate, data.decode("utf-8", "replace").encode())


def _without_lone_surrogate(escape: re.Match[bytes]) -> bytes:
    return rb"\ufffd" if escape["lone"] is not None else escape[0]
