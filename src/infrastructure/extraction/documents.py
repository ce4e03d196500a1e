"""Reads one document: HTML, PDF or plain text. Runs only in the extraction child, never in the
service.

Libraries: lxml and trafilatura (main text of HTML), pypdf.
"""

import io
import re
from dataclasses import dataclass
from enum import StrEnum

import pypdf
import trafilatura
from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring
from pypdf.errors import LimitReachedError

from infrastructure.extraction.decoding import decoded
from infrastructure.extraction.media_types import DocumentKind, declared_charset, document_kind

_MAX_TITLE = 300
_SPACES = re.compile(r"\s+")
_NOT_ITS_FAULT = (MemoryError, RecursionError, OSError)
"""Errors that do not mean that the document is damaged."""
_UNREADABLE_PAGE = "[This page could not be read.]"
_INVISIBLE = ("script", "style", "noscript", "template", "svg", "head", "iframe", "object")
_BLOCKS = ("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article", "pre", "table")


class DocumentFault(StrEnum):
    """Why a document has no text."""

    UNSUPPORTED = "unsupported"
    UNREADABLE = "unreadable"
    ENCRYPTED = "encrypted"
    NO_TEXT = "no_text"
    TOO_LARGE = "too_large"
    TOO_COSTLY = "too_costly"
    INTERNAL = "internal"


class DocumentError(Exception):
    """The document has no usable text."""

    def __init__(self, fault: DocumentFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Document:
    title: str | None
    pages: tuple[str, ...]


def read_document(data: bytes, media_type: str, *, max_characters: int) -> Document:
    """Title and text of a document. Raises DocumentError, and MemoryError at the memory limit."""
    try:
        document = _read(data, media_type, max_characters)
    except RecursionError as error:
        raise DocumentError(DocumentFault.TOO_COSTLY) from error
    if sum(map(len, document.pages)) > max_characters:
        raise DocumentError(DocumentFault.TOO_LARGE)
    return document


def _read(data: bytes, media_type: str, max_characters: int) -> Document:
    match document_kind(media_type):
        case DocumentKind.HTML:
            return _read_html(decoded(data, declared_charset(media_type), is_html=True))
        case DocumentKind.PDF:
            return _read_pdf(data, max_characters)
        case DocumentKind.TEXT:
            return _read_text(decoded(data, declared_charset(media_type)))
        case None:
            raise DocumentError(DocumentFault.UNSUPPORTED)


def _read_text(text: str) -> Document:
    if "\0" in text:
        raise DocumentError(DocumentFault.UNREADABLE)
    return Document(title=None, pages=(text.replace("\r\n", "\n").replace("\r", "\n"),))


def _read_html(source: str) -> Document:
    """The main text as Markdown; all visible text if the page has no main text."""
    tree = _parsed(source)
    title = _one_line(tree.findtext(".//title"))
    text = trafilatura.extract(
        tree, output_format="markdown", include_comments=False, include_tables=True, include_links=False
    )
    # Parsed again, because extraction modifies the tree.
    text = (text or _visible_text(_parsed(source))).strip()
    if not text:
        raise DocumentError(DocumentFault.NO_TEXT)
    return Document(title=title, pages=(text,))


def _parsed(source: str) -> HtmlElement:
    # As bytes, because a text with a declared charset is rejected; `huge_tree` for pages nested
    # deeper than 256.
    parser = HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False, huge_tree=True)
    try:
        return document_fromstring(source.replace("\0", "").encode("utf-8", errors="replace"), parser=parser)
    except etree.ParserError as error:
        raise DocumentError(DocumentFault.NO_TEXT) from error
    except etree.XMLSyntaxError as error:  # any text parses as HTML, so this means memory
        raise DocumentError(DocumentFault.TOO_COSTLY) from error


def _visible_text(tree: HtmlElement) -> str:
    etree.strip_elements(tree, *_INVISIBLE, with_tail=False)
    for block in tree.iter(*_BLOCKS):
        block.tail = "\n" + (block.tail or "")
    lines = (_SPACES.sub(" ", line).strip() for line in "".join(tree.itertext()).splitlines())
    return "\n".join(line for line in lines if line)


def _read_pdf(data: bytes, max_characters: int) -> Document:
    reader, count, title = _opened_pdf(data)
    pages: list[str] = []
    size = unread = 0
    for number in range(count):
        page = _page_text(reader, number)
        unread += page is None
        pages.append(_UNREADABLE_PAGE if page is None else page)
        size += len(pages[-1])
        if size > max_characters:
            raise DocumentError(DocumentFault.TOO_LARGE)
    if unread == count:
        raise DocumentError(DocumentFault.UNREADABLE)
    if not any(pages):
        raise DocumentError(DocumentFault.NO_TEXT)
    return Document(title=title, pages=tuple(pages))


def _opened_pdf(data: bytes) -> tuple[pypdf.PdfReader, int, str | None]:
    """Reader, number of pages, title."""
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentError(DocumentFault.ENCRYPTED)
        return reader, len(reader.pages), _one_line(reader.metadata.title if reader.metadata is not None else None)
    except (DocumentError, *_NOT_ITS_FAULT):
        raise
    except LimitReachedError as error:
        raise DocumentError(DocumentFault.TOO_COSTLY) from error
    except Exception as error:  # damaged files raise any exception
        raise DocumentError(DocumentFault.UNREADABLE) from error


def _page_text(reader: pypdf.PdfReader, number: int) -> str | None:
    """The text of a page; None for a damaged one, so that the other pages are still read."""
    try:
        return reader.pages[number].extract_text().strip()
    except _NOT_ITS_FAULT:
        raise
    except LimitReachedError as error:
        raise DocumentError(DocumentFault.TOO_COSTLY) from error
    except Exception:  # noqa: BLE001  # damaged files raise any exception
        return None


def _one_line(text: object) -> str | None:
    if not isinstance(text, str):
        return None
    return _SPACES.sub(" ", text).strip()[:_MAX_TITLE] or None
