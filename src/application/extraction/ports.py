"""Port of text extraction: bytes of untrusted documents in, text out."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedText:
    """The text of a document. `pages` holds one text per page of a PDF (also empty ones), and a
    single text otherwise. `title` is the document's own title, on one line."""

    pages: tuple[str, ...]
    title: str | None = None

    @property
    def text(self) -> str:
        """The whole text, with a blank line between pages."""
        return self.pages[0] if len(self.pages) == 1 else "\n\n".join(page for page in self.pages if page)


class TextExtractor(Protocol):
    """Reads documents in isolation, with bounds on time, memory and the size of the text."""

    def supports(self, media_type: str) -> bool:
        """Whether documents of this type can be read. The type may carry parameters (`text/html;
        charset=latin-1`)."""

    async def extract(self, data: bytes, media_type: str, *, timeout_s: float) -> ExtractedText:
        """The text of `data`: the main text of HTML as Markdown, the text of each page of a PDF,
        other types decoded. A `charset` in the type applies unless the bytes contradict it.

        Cancellation stops the work.

        Raises ServiceError: `extraction_unsupported`, `extraction_unreadable` (damaged, encrypted,
        wrong type), `extraction_no_text` (INVALID); `extraction_too_large`, `extraction_too_costly`
        (memory), `extraction_timeout` (LIMIT); `extraction_unavailable` (UNAVAILABLE). Their
        details are written for people and models.
        """
