"""Port of text extraction: documents go in as bytes, text comes out, and hostile ones harm nobody."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedText:
    """The text of a document. `pages` has one text for each page of a PDF (empty ones too) and just one for everything
    else; `title` is the document's own, on one line."""

    pages: tuple[str, ...]
    title: str | None = None

    @property
    def text(self) -> str:
        """All of it, with a blank line between pages."""
        return self.pages[0] if len(self.pages) == 1 else "\n\n".join(page for page in self.pages if page)


class TextExtractor(Protocol):
    """Reads documents where they can do no harm: bounded in time, memory and the size of the text."""

    def supports(self, media_type: str) -> bool:
        """Whether documents of this type can be read; the type may carry parameters (`text/html; charset=latin-1`)."""
        ...

    async def extract(self, data: bytes, media_type: str, *, timeout_s: float) -> ExtractedText:
        """The text of `data`: of HTML the main text as Markdown, of PDFs the text of each page, all else decoded. A
        `charset` in the type is believed unless the bytes say otherwise.

        Raises ServiceError: `extraction_unsupported`, `extraction_unreadable` (damaged, encrypted, not what its type
        says), `extraction_no_text` (INVALID); `extraction_too_large`, `extraction_too_costly` (memory),
        `extraction_timeout` (LIMIT); `extraction_unavailable` (UNAVAILABLE). Their details are for people and models.
        Cancellation stops the work.
        """
        ...
