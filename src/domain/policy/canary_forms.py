"""Encoded forms of a canary token, as a search compares them with a text."""

import base64
import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

MIN_FORM = 8
"""Fewest characters of a form. Shorter ones would occur in ordinary text by chance."""

_NOT_ALNUM = re.compile(r"[\W_]+")
_ASCII_SEPARATORS = {code: None for code in range(128) if not chr(code).isalnum()}
_CHARSETS = ("utf-8", "utf-16-le", "utf-16-be")
_BASE85_GROUP, _BASE85_MIN_BYTES = 4, 8
_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SMALL, _LARGE = string.ascii_lowercase, string.ascii_uppercase
_ROT13 = str.maketrans(_SMALL + _LARGE, _SMALL[13:] + _SMALL[:13] + _LARGE[13:] + _LARGE[:13])
_FIRST_TAG, _LAST_TAG, _TAGS = 0xE0020, 0xE007E, 0xE0000
_MOST_REMEMBERED = 4_096
_LONGEST_ESCAPED = 64
"""Characters of a token whose escapes are searched for inside of other encodings: each is up to
twelve characters there."""
_TO_UUENCODE = str.maketrans(_BASE64, "`" + "".join(chr(code) for code in range(33, 96)))


@dataclass(frozen=True, slots=True)
class Form:
    """A spelling of a token.

    - `before`, `after`: the token shares a character with its neighbour there.
    """

    text: str
    token_id: str
    before: bool = False
    after: bool = False


class _Compatible(dict[int, str]):
    """The same characters in their usual form: full width, mathematical, circled, Unicode tags. The
    first ones are kept."""

    def __missing__(self, code: int) -> str:
        is_tag = _FIRST_TAG <= code <= _LAST_TAG
        usual = chr(code - _TAGS) if is_tag else unicodedata.normalize("NFKC", chr(code))
        if len(self) < _MOST_REMEMBERED:
            self[code] = usual
        return usual


_COMPATIBLE = _Compatible()


def folded(text: str) -> str:
    """The text for comparison without case and forms of letters. Characters with a common upper
    case (ı and i) become equal."""
    if not text.isascii():
        text = text.translate(_COMPATIBLE)
    return text.upper().casefold()


def letters(text: str) -> str:
    """The letters and digits of a text, case folded: everything else may separate the characters
    of a token."""
    text = folded(text).translate(_ASCII_SEPARATORS)
    return text if text.isascii() else _NOT_ALNUM.sub("", text)


def characters(text: str) -> str:
    """The text without white space, for encodings that use punctuation."""
    return "".join(text.split())


def forms_of_letters(token_id: str, token: str) -> Iterator[Form]:
    """Forms to search for in the letters of a text:

    - the token, backwards and in ROT13 too, its hexadecimal, base64 and base32 encodings, over
      UTF-8 and UTF-16;
    - these encodings of such an encoding, and of the token with each character written as an escape
      or a number;
    - lists of its bytes and characters as numbers.
    """
    for text, before, after in _written(token):
        form = letters(text)
        if len(form) >= MIN_FORM:
            yield Form(form, token_id, before, after)


def forms_with_punctuation(token_id: str, token: str) -> Iterator[Form]:
    """Forms to search for in the characters of a text: base85, uuencode, and base64 whose
    punctuation separates its letters."""
    for variant in _cases(token):
        raw = variant.encode("utf-8", "surrogatepass")
        for encoded, before, after in _base64_parts(raw):
            yield Form(encoded.translate(_TO_UUENCODE), token_id)
            if not encoded.isalnum():
                yield Form(encoded, token_id, before, after)
                yield Form(encoded.replace("+", "-").replace("/", "_"), token_id, before, after)
        for encode in (base64.b85encode, base64.a85encode):
            yield from (Form(text, token_id) for text in _base85_parts(raw, encode))


def _written(token: str) -> Iterator[tuple[str, bool, bool]]:
    for text in (token, token[::-1], token.translate(_ROT13)):
        yield text, False, False
    for escaped in _escaped(token) if len(token) <= _LONGEST_ESCAPED else ():
        yield from _parts(escaped.encode())
    for variant in _cases(token):
        for charset in _CHARSETS:
            raw = variant.encode(charset, "surrogatepass")
            for part in _parts(raw):
                yield part
                if charset == _CHARSETS[0]:
                    for text in _cases_of_encoding(part[0]):
                        yield from _parts(text.encode())
        for numbers in dict.fromkeys((tuple(variant.encode("utf-8", "surrogatepass")), tuple(map(ord, variant)))):
            yield from (
                ("".join(format(n, spec) for n in numbers), False, False) for spec in ("d", "03d", "o", "03o", "08b")
            )
            yield "".join(f"0x{n:02x}" for n in numbers), False, False


def _escaped(token: str) -> Iterator[str]:
    """The token as written, in escapes and lists only: what is in them when they are encoded
    again."""
    raw, units = token.encode("utf-8", "surrogatepass"), token.encode("utf-16-be", "surrogatepass").hex()
    yield "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))
    for escape in ("\\x{:02x}", "%{:02x}", "%{:02X}"):
        yield "".join(map(escape.format, raw))
    for entity in ("&#{};", "&#x{:x};"):
        yield "".join(map(entity.format, map(ord, token)))
    for separator in (", ", ",", " "):
        yield separator.join(map(str, raw))


def _cases(token: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((token, token.casefold(), token.lower(), token.upper())))


def _cases_of_encoding(text: str) -> tuple[str, ...]:
    """Hexadecimal and base32 are written in both cases; base64 only as it is."""
    return tuple(dict.fromkeys((text, text.lower()))) if text == text.upper() else (text,)


def _parts(raw: bytes) -> Iterator[tuple[str, bool, bool]]:
    yield raw.hex().upper(), False, False
    for encoded, before, after in _base64_parts(raw):
        yield encoded, before, after
        if not encoded.isalnum():
            yield encoded.replace("+", "-").replace("/", "_"), before, after
    yield from _bit_parts(raw, bits=5, group=5, encode=base64.b32encode)


def _base64_parts(raw: bytes) -> Iterator[tuple[str, bool, bool]]:
    return _bit_parts(raw, bits=6, group=3, encode=base64.b64encode)


def _bit_parts(
    raw: bytes, *, bits: int, group: int, encode: Callable[[bytes], bytes]
) -> Iterator[tuple[str, bool, bool]]:
    """The characters that the bytes alone determine, for each place in a group of bytes at which
    they can begin."""
    for offset in range(group):
        end = offset + len(raw)
        first, last = -(-offset * 8 // bits), end * 8 // bits
        padded = b"\0" * offset + raw + b"\0" * (-end % group)
        yield encode(padded).decode()[first:last], offset * 8 % bits > 0, end * 8 % bits > 0


def _base85_parts(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """The characters of the whole groups of four bytes, for each place in a group at which the
    bytes can begin."""
    for offset in range(_BASE85_GROUP):
        whole = raw[offset : offset + (len(raw) - offset) // _BASE85_GROUP * _BASE85_GROUP]
        if len(whole) >= _BASE85_MIN_BYTES:
            yield encode(whole).decode()
