"""Decoded spellings of a text: escapes of URLs, JSON and programming languages, HTML, e-mail and
CSS, up to twice. Each spelling maps back to the text."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_URL = r"(?:%u[0-9a-fA-F]{4})+|(?:%[0-9a-fA-F]{2})+"
_E_MAIL = r"(?:=[0-9a-fA-F]{2})+"
_HTML = r"&(?:\#[0-9]{1,7};?|\#[xX][0-9a-fA-F]{1,6};?|[a-zA-Z][a-zA-Z0-9]{1,31};)"
_CODE = r"""(?:\\u[0-9a-fA-F]{4})+|\\U[0-9a-fA-F]{8}|\\u\{[0-9a-fA-F]{1,6}\}|\\x[0-9a-fA-F]{2}|\\[0-3][0-7]{2}|\\["\\/bfnrt]"""
_CSS = r"\\[0-9a-fA-F]{1,6}[ \t\n]?"
_URL_ESCAPES = re.compile(f"({_URL})")
_CODE_ESCAPES = re.compile(f"({_CODE})")
_ALL_ESCAPES = re.compile(f"({_URL}|{_CODE}|{_HTML}|{_E_MAIL})")
_ESCAPES_WITH_CSS = re.compile(f"({_URL}|{_CSS}|{_HTML}|{_E_MAIL})")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_TAIL_CHARS = 48
"""The longest end of a text that more text could turn into another character."""
_TAIL = re.compile(
    r"(?:(?:%u[0-9a-fA-F]{0,4})+%?|(?:%[0-9a-fA-F]{0,2})+|(?:=[0-9a-fA-F]{0,2})+|&(?:\#[xX]?[0-9a-fA-F]{0,7}|[a-zA-Z0-9]{0,32})"
    r"|\\u\{[0-9a-fA-F]{0,6}|\\U[0-9a-fA-F]{0,8}|(?:\\u[0-9a-fA-F]{0,4})+\\?|\\x[0-9a-fA-F]{0,2}|\\[0-9a-fA-F]{0,6})\Z"
)
_BYTE, _UNICODE = 3, 6
"""Characters of one escape."""

_MOST_MEANINGS = 4_096

Units = Iterator[tuple[str, int]]
"""Decoded characters, and how many characters of the text each one takes."""


@dataclass(frozen=True, slots=True)
class View:
    """A spelling of a text: its character at i represents the text from `starts[i]` to
    `ends[i]`."""

    text: str
    starts: list[int]
    ends: list[int]

    def until(self, end: int) -> "View":
        return View(self.text[:end], self.starts[:end], self.ends[:end])


class _Meanings(dict[str, str]):
    """Decoded escapes by escape. The first ones are kept."""

    def __init__(self, decode: Callable[[str], Units]) -> None:
        super().__init__()
        self._decode = decode

    def __missing__(self, escape: str) -> str:
        meaning = "".join(char for char, _ in self._decode(escape))
        if len(self) < _MOST_MEANINGS:
            self[escape] = meaning
        return meaning


class _Escapes:
    """Kinds of escapes that are decoded together. `signs`: each escape begins with one of them."""

    def __init__(self, signs: str, pattern: re.Pattern[str], decode: Callable[[str], Units]) -> None:
        self.signs = signs
        self._pattern = pattern
        self._decode = decode

    def decoded(self, text: str) -> str:
        parts = self._pattern.split(text)
        meanings = _Meanings(self._decode)
        parts[1::2] = [meanings[escape] for escape in parts[1::2]]
        return "".join(parts)

    def decoded_view(self, view: View) -> View:
        chars: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        place = 0
        for found in self._pattern.finditer(view.text):
            chars += view.text[place : found.start()]
            starts += view.starts[place : found.start()]
            ends += view.ends[place : found.start()]
            place = found.start()
            for char, width in self._decode(found[0]):
                chars.append(char)
                starts.append(view.starts[place])
                ends.append(view.ends[max(place, place + width - 1)])
                place = min(place + width, found.end() - 1)
            place = found.end()
        return View("".join(chars) + view.text[place:], starts + view.starts[place:], ends + view.ends[place:])


def spellings(text: str) -> Iterator[str]:
    """The text; the text with its escapes decoded; and this decoded once more."""
    yield text
    for escapes, again in _decoders_of(text):
        once = escapes.decoded(text)
        if once != text:
            yield once
            if again and any(sign in once for sign in escapes.signs):
                yield escapes.decoded(once)


def views(text: str) -> Iterator[View]:
    """The same as `spellings`, with the mapping to the text; much slower."""
    view = View(text, list(range(len(text))), list(range(1, len(text) + 1)))
    yield view
    for escapes, again in _decoders_of(text):
        once = escapes.decoded_view(view)
        if once.text != text:
            yield once
            if again and any(sign in once.text for sign in escapes.signs):
                yield escapes.decoded_view(once)


def unfinished_escape(text: str) -> int:
    """The start of the end of a text that more text could turn into other characters; the text's
    length if there is none."""
    found = _TAIL.search(text, max(0, len(text) - _TAIL_CHARS))
    return len(text) if found is None else found.start()


def _decoders_of(text: str) -> Iterator[tuple[_Escapes, bool]]:
    """The decoders for a text, and whether each is applied twice.

    A backslash may be literal in a text that was escaped for a URL, and a percent sign in JSON:
    these two are decoded alone, too.
    """
    signs = [sign for sign in _ALL.signs if sign in text]
    if not signs:
        return
    yield _ALL, True
    if "\\" in signs:
        yield _ALL_WITH_CSS, True
    if len(signs) > 1:
        yield from ((escapes, False) for escapes in (_OF_URLS, _OF_CODE) if escapes.signs in signs)


def _bytes(escapes: str) -> Units:
    if escapes.startswith("%u"):
        return _utf_16(escapes, "%u")
    text = bytes.fromhex(escapes.replace(escapes[0], "")).decode("utf-8", "surrogateescape")
    return ((char, _BYTE * len(char.encode("utf-8", "surrogateescape"))) for char in text)


def _code(escape: str) -> Units:
    if escape.startswith("\\u{"):
        return _character(escape[3:-1], 16, len(escape))
    if escape.startswith("\\u"):
        return _utf_16(escape, "\\u")
    if escape[1] in "xU":
        return _character(escape[2:], 16, len(escape))
    if escape[1].isdigit():
        return _character(escape[1:], 8, len(escape))
    return _in_one(_SHORT[escape[1]], len(escape))


def _utf_16(escapes: str, sign: str) -> Units:
    text = bytes.fromhex(escapes.replace(sign, "")).decode("utf-16-be", "surrogatepass")
    return ((char, _UNICODE * (2 if ord(char) > 0xFFFF else 1)) for char in text)


def _any(escape: str) -> Units:
    match escape[0]:
        case "&":
            return _in_one(html.unescape(escape), len(escape))
        case "\\":
            return _code(escape)
        case _:
            return _bytes(escape)


def _any_with_css(escape: str) -> Units:
    return _character(escape[1:].strip(), 16, len(escape)) if escape[0] == "\\" else _any(escape)


def _character(digits: str, radix: int, width: int) -> Units:
    code = int(digits, radix)
    return _in_one(chr(code) if code <= 0x10FFFF else "\ufffd", width)


def _in_one(text: str, width: int) -> Units:
    """The characters of an escape that is replaced as a whole."""
    return ((char, width if place == 0 else 0) for place, char in enumerate(text))


_OF_URLS = _Escapes("%", _URL_ESCAPES, _bytes)
_OF_CODE = _Escapes("\\", _CODE_ESCAPES, _code)
_ALL = _Escapes("%\\&=", _ALL_ESCAPES, _any)
_ALL_WITH_CSS = _Escapes("%\\&=", _ESCAPES_WITH_CSS, _any_with_css)
