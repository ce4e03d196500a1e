"""The supported kinds of documents by media type. The service and the reading process share it."""

from email.message import Message
from enum import StrEnum

_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
_TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/javascript",
        "application/json",
        "application/sql",
        "application/toml",
        "application/x-javascript",
        "application/x-ndjson",
        "application/x-sh",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
_TEXT_SUFFIXES = ("+json", "+xml", "+yaml")


class DocumentKind(StrEnum):
    """How a document is read."""

    HTML = "html"
    PDF = "pdf"
    TEXT = "text"


def document_kind(media_type: str) -> DocumentKind | None:
    """How documents of this type are read; None if unsupported. Parameters are ignored."""
    essence = media_type.partition(";")[0].strip().lower()
    if essence in _HTML_TYPES:
        return DocumentKind.HTML
    if essence == "application/pdf":
        return DocumentKind.PDF
    is_text = essence.startswith("text/") or essence in _TEXT_TYPES
    if is_text or (essence.startswith("application/") and essence.endswith(_TEXT_SUFFIXES)):
        return DocumentKind.TEXT
    return None


def declared_charset(media_type: str) -> str | None:
    """The `charset` parameter of a type, if any."""
    header = Message()
    header["content-type"] = media_type.replace("\r", " ").replace("\n", " ")
    charset = header.get_param("charset")
    return charset.strip() or None if isinstance(charset, str) else None
