"""Cuts texts into chunks: preferably at headings and paragraphs, always at a known line. The same
text always gives the same chunks."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from domain.sources.source import SourceChunk, SourceKind

TARGET = 1_200
"""A chunk of this many characters ends at the next blank line."""
MAXIMUM = 2_000
"""Most characters of a chunk."""
_SECTION = 300
"""A chunk of this many characters ends before the next heading."""
_MAX_HEADING = 300
_HEADING = re.compile(r"(#{1,6})\s+(\S.*)")
_INK = re.compile(r"\S")
_STRETCH = 64 * 1024
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


def decoded(content: bytes) -> str:
    """The text of a file in UTF-8, in UTF-16 with a byte order mark, or otherwise in Windows-1252.
    Lines end with `\\n`."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", errors="replace")
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = content.decode("cp1252", errors="replace")
    return text if "\r" not in text else text.replace("\r\n", "\n").replace("\r", "\n")


def chunks_of(text: str, kind: SourceKind, *, page: int | None = None) -> Iterator[SourceChunk]:
    """The chunks of a text in order, generated lazily. Blank lines at the ends of a chunk are
    dropped."""
    context = _Context(kind)
    piece = _Piece()
    lines = _Lines(text)
    for number, line in lines:
        heads_a_section = context.read(line)
        blank = not line.strip()
        if piece.size and (
            (heads_a_section and piece.size >= _SECTION)
            or (blank and piece.size >= TARGET)
            or piece.size + len(line) + 1 > MAXIMUM
        ):
            yield from piece.taken(page)
        if blank and not piece.size:
            lines.skip_blank()
            continue
        if not piece.size:
            piece.heading = context.heading
        if len(line) < MAXIMUM:
            piece.add(number, line)
            continue
        for part in _parts(line):
            if piece.size and piece.size + len(part) + 1 > MAXIMUM:
                yield from piece.taken(page)
                piece.heading = context.heading
            piece.add(number, part)
    yield from piece.taken(page)


def chunks_of_pages(pages: Sequence[str]) -> Iterator[SourceChunk]:
    """The chunks of a document page by page, from 1. No chunk spans two pages."""
    for number, text in enumerate(pages, start=1):
        yield from chunks_of(text, SourceKind.TEXT, page=number)


@dataclass(slots=True)
class _Piece:
    """The chunk under construction."""

    lines: list[tuple[int, str]] = field(default_factory=list)
    size: int = 0
    heading: str | None = None

    def add(self, number: int, part: str) -> None:
        self.lines.append((number, part))
        self.size += len(part) + 1

    def taken(self, page: int | None) -> Iterator[SourceChunk]:
        """Yield the chunk, if it has content, and start a new one."""
        lines, heading = self.lines, self.heading
        self.lines, self.size, self.heading = [], 0, None
        while lines and not lines[-1][1].strip():
            lines.pop()
        if not lines:
            return
        yield SourceChunk(
            text="\n".join(part for _, part in lines),
            start_line=lines[0][0],
            end_line=lines[-1][0],
            page=page,
            heading=heading,
        )


class _Context:
    """The headings above the current line."""

    def __init__(self, kind: SourceKind) -> None:
        self._kind = kind
        self._headings: list[tuple[int, str]] = []
        self._first_row: str | None = None
        self._in_code = False
        self.heading: str | None = None

    def read(self, line: str) -> bool:
        """Process the next line; returns whether it starts a section."""
        if self._kind is SourceKind.CSV:
            # The first row itself has no heading.
            self.heading = self._first_row
            if self._first_row is None and line.strip():
                self._first_row = line[:_MAX_HEADING]
            return False
        if self._kind is not SourceKind.MARKDOWN:
            return False
        if _FENCE.match(line):
            self._in_code = not self._in_code
        found = None if self._in_code else _HEADING.match(line[:_MAX_HEADING])
        if found is None:
            return False
        level = len(found[1])
        self._headings = [entry for entry in self._headings if entry[0] < level]
        self._headings.append((level, found[2].rstrip("# ")))
        self.heading = " > ".join(title for _, title in self._headings)[:_MAX_HEADING]
        return True


class _Lines:
    """Numbered lines, one at a time: a text may consist of very many empty lines."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = 0
        self._number = 0

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return self

    def __next__(self) -> tuple[int, str]:
        start = self._start
        if start >= len(self._text):
            raise StopIteration
        end = self._text.find("\n", start)
        if end < 0:
            end = len(self._text)
        self._start = end + 1
        self._number += 1
        return self._number, self._text[start:end]

    def skip_blank(self) -> None:
        """Move to the next line that is not blank, without a step for each blank line."""
        text, place, found = self._text, self._start, None
        # One section at a time, because a search blocks all threads.
        while found is None and place < len(text):
            found = _INK.search(text, place, place + _STRETCH)
            place += _STRETCH
        ink = len(text) if found is None else found.start()
        line = max(self._start, text.rfind("\n", self._start, ink) + 1)
        self._number += text.count("\n", self._start, line)
        self._start = line


def _parts(line: str) -> Iterator[str]:
    """A line, cut between words into parts no longer than a chunk."""
    start = 0
    while len(line) - start >= MAXIMUM:
        end = line.rfind(" ", start + MAXIMUM // 2, start + MAXIMUM)
        end = start + MAXIMUM - 1 if end < 0 else end + 1
        yield line[start:end]
        start = end
    yield line[start:]
