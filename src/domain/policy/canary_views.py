"""Alternative spellings of a text: case folded, escapes decoded, line breaks removed; each maps
back to the text."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_URL = r"(?:%[0-9a-fA-F]{2})+"
_JSON = r'(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]'
_ESCAPES = re.compile(f"{_URL}|{_JSON}")
_URL_ESCAPES, _JSON_ESCAPES = re.compile(_URL), re.compile(_JSON)
_UNFINISHED = re.compile(r"(?:%[0-9a-fA-F]?|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BREAKS = str.maketrans("", "", "\r\n")
_PERCENT, _UNICODE = 3, 6
"""Characters of one escape."""


@dataclass(frozen=True, slots=True)
class View:
    """A spelling of a text: its character at i represents the text from `starts[i]` to
    `ends[i]`."""

    text: str
    starts: list[int]
    ends: list[int]

    def without(self, dropped: str) -> "View":
        places = [place for place, char in enumerate(self.text) if char not in dropped]
        return View(
            "".join(self.text[place] for place in places),
            [self.starts[place] for place in places],
            [self.ends[place] for place in places],
        )


def folded(text: str) -> str:
    """The text for comparison without case. Characters with a common upper case (ı and i) become
    equal."""
    return text.upper().casefold()


def spellings(text: str, *, plus_is_space: bool) -> Iterator[str]:
    bases = [folded(text)]
    bases += [
        folded(escapes.sub(lambda escape: _meaning(escape[0]), source))
        for source, escapes in _escaped(text, plus_is_space=plus_is_space)
    ]
    for base in bases:
        yield base
        joined = base.translate(_BREAKS) if "\n" in base or "\r" in base else base
        if joined is not base:
            yield joined
        if plus_is_space and "+" in base:
            yield joined.replace("+", " ")


def views(text: str, *, plus_is_space: bool) -> Iterator[View]:
    """The same as `spellings`, with the mapping to the text; much slower."""
    bases = [_view(_characters(text))]
    bases += [_view(_decoded(source, escapes)) for source, escapes in _escaped(text, plus_is_space=plus_is_space)]
    for base in bases:
        yield base
        joined = base.without("\r\n") if "\n" in base.text or "\r" in base.text else base
        if joined is not base:
            yield joined
        if plus_is_space and "+" in base.text:
            yield View(joined.text.replace("+", " "), joined.starts, joined.ends)


def _escaped(text: str, *, plus_is_space: bool) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The texts to decode, and the escapes to decode in each.

    In a token that was escaped for a URL a backslash may be literal, and in JSON a percent sign.
    Form encoding turns a plus into a space before it decodes an escaped plus.
    """
    in_url, in_json = "%" in text, "\\" in text
    if in_url:
        yield text, _URL_ESCAPES
    if in_json:
        yield text, _JSON_ESCAPES
    if in_url and in_json:
        yield text, _ESCAPES
    if in_url and plus_is_space and "+" in text:
        yield text.replace("+", " "), _URL_ESCAPES


def unfinished_escape(text: str) -> int:
    """The start of an escape that the end of the text truncates; the text's length if there is
    none. For a character of several escapes, the start of the first."""
    escapes = list(_ESCAPES.finditer(text))
    last = escapes[-1] if escapes else None
    after = 0 if last is None else last.end()
    cut = _UNFINISHED.search(text, after)
    end = len(text) if cut is None else cut.start()
    if last is None or last.end() != end:
        return end
    if last[0].startswith("%"):
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        decoder.decode(_bytes(last[0]))
        return end - _PERCENT * len(decoder.getstate()[0])
    if last[0].startswith("\\u") and 0xD800 <= int(last[0][-4:], 16) < 0xDC00:
        return end - _UNICODE
    return end


def _view(units: Iterator[tuple[str, int, int]]) -> View:
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for char, start, end in units:
        same = folded(char)
        chars.append(same)
        starts += [start] * len(same)
        ends += [end] * len(same)
    return View("".join(chars), starts, ends)


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    for place, char in enumerate(text):
        yield char, place, place + 1


def _decoded(text: str, escapes: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
    place = 0
    for escape in escapes.finditer(text):
        for at in range(place, escape.start()):
            yield text[at], at, at + 1
        place = escape.start()
        for char in _meaning(escape[0]):
            width = _width(escape[0], char)
            yield char, place, place + width
            place += width
        place = escape.end()
    for at in range(place, len(text)):
        yield text[at], at, at + 1


def _meaning(escape: str) -> str:
    if escape.startswith("%"):
        return _bytes(escape).decode("utf-8", "surrogateescape")
    if escape.startswith("\\u"):
        return bytes.fromhex(escape.replace("\\u", "")).decode("utf-16-be", "surrogatepass")
    return _SHORT[escape[1]]


def _width(escape: str, char: str) -> int:
    if escape.startswith("%"):
        return _PERCENT * len(char.encode("utf-8", "surrogateescape"))
    if escape.startswith("\\u"):
        return _UNICODE * (2 if ord(char) > 0xFFFF else 1)
    return len(escape)


def _bytes(escapes: str) -> bytes:
    return bytes.fromhex(escapes.replace("%", ""))
