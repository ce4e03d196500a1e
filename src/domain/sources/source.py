"""Sources: files of a thread that its runs search and compute with. Names, kinds and sizes; no I/O."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import OrganizationId, RunId, SourceId, ThreadId

MAX_SOURCE_BYTES = 50 * 1024 * 1024
MAX_SOURCES = 1_000
"""Sources of one thread."""
MAX_NAME_CHARACTERS = 255
_SNIFFED = 8 * 1024
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class SourceKind(StrEnum):
    """What a source is read as; values are part of the public contract. `file`: kept as bytes, not searched."""

    TEXT = "text"
    MARKDOWN = "markdown"
    CSV = "csv"
    HTML = "html"
    PDF = "pdf"
    FILE = "file"


_KIND_OF_ENDING = {
    "txt": SourceKind.TEXT,
    "text": SourceKind.TEXT,
    "log": SourceKind.TEXT,
    "md": SourceKind.MARKDOWN,
    "markdown": SourceKind.MARKDOWN,
    "csv": SourceKind.CSV,
    "tsv": SourceKind.CSV,
    "htm": SourceKind.HTML,
    "html": SourceKind.HTML,
    "xhtml": SourceKind.HTML,
    "pdf": SourceKind.PDF,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file of a thread, without its bytes.

    `digest` is SHA-256 in hex. `chunks` counts the pieces that can be searched; `problem` says why there are none, or not
    all. `run_id` names the run that made it. Names need not be unique in a thread.
    """

    id: SourceId
    organization_id: OrganizationId
    thread_id: ThreadId
    name: str
    kind: SourceKind
    size: int
    digest: str
    created_at: datetime
    chunks: int = 0
    problem: str | None = None
    run_id: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChunk:
    """A piece of a source's text, as it is found and shown.

    Lines count from 1, both ends included; in a PDF they count on `page`. `heading` is what the piece stands under: the
    headings above it in Markdown, the first row of a CSV file.
    """

    text: str
    start_line: int
    end_line: int
    page: int | None = None
    heading: str | None = None

    @property
    def found_by(self) -> str:
        """The text whose words find it."""
        return self.text if self.heading is None else f"{self.heading}\n{self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A piece with the words that find it (`domain.sources.words`), with blanks between them."""

    chunk: SourceChunk
    words: str


def kind_of(name: str, beginning: bytes) -> SourceKind:
    """The kind by the ending of the name, if the first bytes do not speak against it; without a known ending, whatever
    looks like text is text."""
    kind = _KIND_OF_ENDING.get(name.rpartition(".")[2].lower()) if "." in name else None
    if beginning.startswith(b"%PDF-"):
        return SourceKind.PDF
    if kind is SourceKind.PDF or not _looks_like_text(beginning[:_SNIFFED]):
        return SourceKind.FILE
    return kind or SourceKind.TEXT


def require_name(name: str) -> None:
    """Raise INVALID `source_name_invalid` unless a source may have this name: a file name, not a path."""
    wrong = None
    if not name.strip() or name in {".", ".."}:
        wrong = "must be the name of a file"
    elif len(name) > MAX_NAME_CHARACTERS:
        wrong = f"must not be longer than {MAX_NAME_CHARACTERS} characters"
    elif "/" in name or "\\" in name:
        wrong = "must be a file name without a path"
    elif not name.isprintable():
        wrong = "must not have control characters or line ends"
    if wrong is not None:
        raise invalid(
            "source_name_invalid", "The name of the source is not valid.", Violation(path="name", message=wrong)
        )


def _looks_like_text(beginning: bytes) -> bool:
    if beginning.startswith(_BYTE_ORDER_MARKS):
        return True
    controls = sum(1 for byte in beginning if byte < 32 and byte not in b"\t\n\r\f\x1b")
    return b"\0" not in beginning and controls * 50 <= len(beginning)
