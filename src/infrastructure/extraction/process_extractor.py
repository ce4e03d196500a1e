"""The `TextExtractor` of the service: reads documents in child processes of a reader process.

The reader (`reader_process.py`) starts with the first document and ends after an idle time, because
its libraries take tens of megabytes. Each document gets a child with bounded memory, which is
killed at its deadline.
"""

import asyncio
import logging
import socket
from dataclasses import dataclass

from application.extraction.ports import ExtractedText
from domain.errors import ErrorKind, ServiceError
from infrastructure.extraction.media_types import document_kind
from infrastructure.extraction.wire import Job
from infrastructure.forking.fork_server import (
    ChildLostError,
    ForkedChildren,
    ForkServerUnavailableError,
    received,
    received_head,
)

logger = logging.getLogger(__name__)

_READER = "infrastructure.extraction.reader_process"
_FAULTS = {
    "unsupported": (ErrorKind.INVALID, "extraction_unsupported", "Documents of this type cannot be read as text."),
    "unreadable": (ErrorKind.INVALID, "extraction_unreadable", "The document is damaged, or not of the type it says."),
    "encrypted": (ErrorKind.INVALID, "extraction_unreadable", "The document is encrypted and cannot be read."),
    "no_text": (ErrorKind.INVALID, "extraction_no_text", "The document has no text that can be read."),
    "internal": (ErrorKind.UNAVAILABLE, "extraction_unavailable", "Documents cannot be read at the moment."),
    "too_costly": (ErrorKind.LIMIT, "extraction_too_costly", "Reading the document takes more memory than allowed."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionLimits:
    """Limits of one document. `max_memory_bytes` is the child's memory on top of the libraries."""

    max_bytes: int = 50 * 1024 * 1024
    max_characters: int = 20_000_000
    max_memory_bytes: int = 768 * 1024 * 1024


class ProcessTextExtractor:
    """Reads at most `max_concurrent` documents at a time; others wait within their own timeout."""

    def __init__(
        self, *, limits: ExtractionLimits | None = None, max_concurrent: int = 2, idle_timeout_s: float = 120.0
    ) -> None:
        self._limits = limits or ExtractionLimits()
        self._children = ForkedChildren(_READER, max_concurrent=max_concurrent, idle_timeout_s=idle_timeout_s)

    def supports(self, media_type: str) -> bool:
        """HTML, PDF and all text types."""
        return document_kind(media_type) is not None

    async def extract(self, data: bytes, media_type: str, *, timeout_s: float) -> ExtractedText:
        """The timeout includes the wait for other documents."""
        if not self.supports(media_type):
            raise _error("unsupported")
        if len(data) > self._limits.max_bytes:
            raise _too_large(f"The document has more than {self._limits.max_bytes:,} bytes.")
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline:
                return await self._extracted(data, media_type, timeout_s)
        except TimeoutError:
            if not deadline.expired():
                raise
            sentence = f"The document could not be read within {timeout_s:.3g} seconds."
            raise ServiceError("extraction_timeout", ErrorKind.LIMIT, sentence) from None

    async def close(self) -> None:
        await self._children.close()

    async def _extracted(self, data: bytes, media_type: str, timeout_s: float) -> ExtractedText:
        job = Job(
            media_type=media_type,
            max_characters=self._limits.max_characters,
            max_memory_bytes=self._limits.max_memory_bytes,
            cpu_s=int(timeout_s) + 2,  # a safety net: the deadline here comes first
        )
        try:
            return await self._children.run(lambda connection: self._answer(connection, job, data))
        except ChildLostError:
            raise _error("too_costly") from None
        except ForkServerUnavailableError:
            raise _error("internal") from None

    async def _answer(self, connection: socket.socket, job: Job, data: bytes) -> ExtractedText:
        """The child's answer. Raises EOFError or OSError when it ends early."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(connection, job.encoded(len(data)))
        await loop.sock_sendall(connection, data)
        return await self._text(connection, await received_head(connection))

    async def _text(self, connection: socket.socket, head: dict[str, object]) -> ExtractedText:
        fault, title, lengths = head.get("fault"), head.get("title"), head.get("lengths")
        if fault == "too_large":
            raise _too_large(f"The text of the document has more than {self._limits.max_characters:,} characters.")
        if fault == "internal":
            logger.error("document was not read: its child process lacks a file")
        if isinstance(fault, str):
            raise _error(fault)
        if not isinstance(lengths, list):
            raise EOFError
        sizes = [size for size in lengths if isinstance(size, int) and size >= 0]
        if sum(sizes) > 4 * self._limits.max_characters:
            raise EOFError
        text = memoryview(await received(connection, sum(sizes)))
        pages, start = [], 0
        for size in sizes:
            pages.append(str(text[start : start + size], "utf-8", "replace"))
            start += size
        return ExtractedText(title=title if isinstance(title, str) else None, pages=tuple(pages))


def _error(fault: str) -> ServiceError:
    kind, code, sentence = _FAULTS.get(fault, _FAULTS["unreadable"])
    return ServiceError(code, kind, sentence)


def _too_large(sentence: str) -> ServiceError:
    return ServiceError("extraction_too_large", ErrorKind.LIMIT, sentence)
