"""Text extraction for tests: documents that say in their first bytes what they are, and are text
from there on."""

from application.extraction.ports import ExtractedText
from domain.errors import invalid


class PlainTextExtractor:
    """The `TextExtractor` port. Pages of a "PDF" are separated by form feeds; what holds `damaged`
    cannot be read."""

    def supports(self, media_type: str) -> bool:
        """HTML and PDF."""
        return media_type in {"text/html", "application/pdf"}

    async def extract(self, data: bytes, media_type: str, *, timeout_s: float) -> ExtractedText:
        """The text after the mark."""
        text = data.decode()
        if "damaged" in text:
            raise invalid("extraction_unreadable", "The document is damaged.")
        return ExtractedText(pages=tuple(text.removeprefix("%PDF-").split("\f")))
