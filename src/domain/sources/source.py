"""Sources: files of a thread that its runs search and compute with. Names, kinds and sizes;
no I/O."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.ids import OrganizationId, RunId, SourceId, ThreadId

MAX_SOURCE_BYTES = 50 * 1024 * 1024
MAX_SOURCES = 1_000
"""Per thread."""
MAX_NAME_CHARACTERS = 255
_SNIFFED = 8 * 1024
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class SourceKind(StrEnum):
    """How a source is read. The values are part of the public contract. `file`: stored as bytes,
    not searchable."""

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

    - `digest` is SHA-256 in hex.
    - `chunks` counts the searchable chunks; `problem` says why there are none, or not all.
    - `run_id` is the run that created it.
    - Names need not be unique in a thread.
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
    """A chunk of a source's text, as it is found and shown.

    Lines are counted from 1, both ends inclusive; in a PDF they are counted per `page`. `heading`
    is the headings above the chunk in Markdown, or the first row of a CSV file.
    """

    text: str
    start_line: int
    end_line: int
    page: int | None = None
    heading: str | None = None

    @property
    def found_by(self) -> str:
        """The text that is indexed for the chunk."""
        return self.text if self.heading is None else f"{self.heading}\n{self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedChunk:
    """A chunk and its index words (`domain.sources.words`), separated by spaces."""

    chunk: SourceChunk
    words: str


def kind_of(name: str, beginning: bytes) -> SourceKind:
    """The kind by file extension, unless the first bytes contradict it. Without a known extension,
    anything that looks like text is text."""
    kind = _KIND_OF_ENDING.get(name.rpartition(".")[2].lower()) if "." in name else None
    if beginning.startswith(b"%PDF-"):
        return SourceKind.PDF
    if kind is SourceKind.PDF or not _looks_like_text(beginning[:_SNIFFED]):
        return SourceKind.FILE
    return kind or SourceKind.TEXT


def require_name(name: str) -> None:
    """Raise INVALID `source_name_invalid` unless the name is a file name without a path."""
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
