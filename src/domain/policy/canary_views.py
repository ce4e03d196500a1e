"""What a text may say in other spellings: case folded, with escapes decoded, without line breaks; each with its way back."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ESCAPES = re.compile(r'(?:%[0-9a-fA-F]{2})+|(?:\\u[0-9a-fA-F]{4})+|\\["\\/bfnrt]')
_UNFINISHED = re.compile(r"(?:%[0-9a-fA-F]?|\\(?:u[0-9a-fA-F]{0,3})?)\Z")
_SHORT = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_BREAKS = str.maketrans("", "", "\r\n")
_PERCENT, _UNICODE = 3, 6
"""Characters of one escape."""


@dataclass(frozen=True, slots=True)
class View:
    """A spelling of a text: its character at i stands for the text from `starts[i]` to `ends[i]`."""

    text: str
    starts: list[int]
    ends: list[int]

    def without(self, dropped: str) -> "View":
        """The same without some characters."""
        places = [place for place, char in enumerate(self.text) if char not in dropped]
        return View(
            "".join(self.text[place] for place in places),
            [self.starts[place] for place in places],
            [self.ends[place] for place in places],
        )


def folded(text: str) -> str:
    """The text without regard to case: characters that are the same in upper case too (ı and i) are one."""
    return text.upper().casefold()


def spellings(text: str, *, plus_is_space: bool) -> Iterator[str]:
    """All spellings of the text."""
    bases = [folded(text)]
    if "%" in text or "\\" in text:
        bases.append(folded(_ESCAPES.sub(lambda escape: _meaning(escape[0]), text)))
    for base in bases:
        yield base
        joined = base.translate(_BREAKS) if "\n" in base or "\r" in base else base
        if joined is not base:
            yield joined
        if plus_is_space and "+" in base:
            yield joined.replace("+", " ")


def views(text: str, *, plus_is_space: bool) -> Iterator[View]:
    """The same as `spellings`, with the way back; much slower."""
    bases = [_view(_characters(text))]
    if "%" in text or "\\" in text:
        bases.append(_view(_decoded(text)))
    for base in bases:
        yield base
        joined = base.without("\r\n") if "\n" in base.text or "\r" in base.text else base
        if joined is not base:
            yield joined
        if plus_is_space and "+" in base.text:
            yield View(joined.text.replace("+", " "), joined.starts, joined.ends)


def unfinished_escape(text: str) -> int:
    """Where an escape begins that the end of the text cuts short (of a character that takes several, the first); the
    text's length if there is none."""
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


def _decoded(text: str) -> Iterator[tuple[str, int, int]]:
    place = 0
    for escape in _ESCAPES.finditer(text):
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
