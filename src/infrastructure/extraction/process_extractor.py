"""The `TextExtractor` of the service: documents are read in child processes of one reader process, and never here.

The reader (reader_process.py) starts with the first document and ends when none came for a while, for its libraries take
tens of megabytes. Each document has a child of its own, bounded in memory, which is killed when its time is up.
"""

import asyncio
import json
import logging
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from dataclasses import dataclass

from application.extraction.ports import ExtractedText
from domain.errors import ErrorKind, ServiceError
from infrastructure.extraction.media_types import document_kind
from infrastructure.extraction.wire import ANSWER, MAX_HEAD_BYTES, READY, Job

logger = logging.getLogger(__name__)

_CHUNK_BYTES = 256 * 1024
_READER = ("-I", "-m", "infrastructure.extraction.reader_process")
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
    """Caps of one document; `max_memory_bytes` is what its child may take beyond what the libraries need."""

    max_bytes: int = 50 * 1024 * 1024
    max_characters: int = 20_000_000
    max_memory_bytes: int = 768 * 1024 * 1024


class ProcessTextExtractor:
    """Reads at most `max_concurrent` documents at a time; further ones wait, within their own time."""

    def __init__(
        self, *, limits: ExtractionLimits | None = None, max_concurrent: int = 2, idle_timeout_s: float = 120.0
    ) -> None:
        self._limits = limits or ExtractionLimits()
        self._slots = asyncio.Semaphore(max_concurrent)
        self._idle_timeout_s = idle_timeout_s
        self._reader: _Reader | None = None
        self._starting = asyncio.Lock()
        self._in_use = 0
        self._idle: asyncio.TimerHandle | None = None

    def supports(self, media_type: str) -> bool:
        """HTML, PDF and everything that is text."""
        return document_kind(media_type) is not None

    async def extract(self, data: bytes, media_type: str, *, timeout_s: float) -> ExtractedText:
        """See the port. The time includes waiting for other documents."""
        if not self.supports(media_type):
            raise _error("unsupported")
        if len(data) > self._limits.max_bytes:
            raise _too_large(f"The document has more than {self._limits.max_bytes:,} bytes.")
        deadline = asyncio.timeout(timeout_s)
        try:
            async with deadline, self._slots:
                self._began()
                try:
                    return await self._extracted(data, media_type, timeout_s)
                finally:
                    self._ended()
        except TimeoutError:
            if not deadline.expired():
                raise
            sentence = f"The document could not be read within {timeout_s:.3g} seconds."
            raise ServiceError("extraction_timeout", ErrorKind.LIMIT, sentence) from None

    async def close(self) -> None:
        """End the reader and all its children."""
        if self._idle is not None:
            self._idle.cancel()
        await self._discard_reader()

    async def _discard_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def _extracted(self, data: bytes, media_type: str, timeout_s: float) -> ExtractedText:
        job = Job(
            media_type=media_type,
            max_characters=self._limits.max_characters,
            max_memory_bytes=self._limits.max_memory_bytes,
            cpu_s=int(timeout_s) + 2,  # a net: the deadline here comes first
        )
        for _ in range(2):
            try:
                return await self._answer(await self._connected(), job, data)
            except (EOFError, OSError):
                if self._reader is not None and self._reader.is_alive:
                    break  # the child is gone without an answer: out of memory, or the document broke its libraries
                # Somebody ended the reader, with its children; the document is not to blame.
        raise _error("too_costly")

    async def _answer(self, connection: socket.socket, job: Job, data: bytes) -> ExtractedText:
        """What the child says. Raises EOFError or OSError when it ends before."""
        loop = asyncio.get_running_loop()
        with connection:
            await loop.sock_sendall(connection, job.encoded(len(data)))
            await loop.sock_sendall(connection, data)
            return await self._text(connection, await self._head(connection))

    async def _connected(self) -> socket.socket:
        """Our end of the socket of a new child."""
        async with self._starting:
            for _ in range(2):
                if self._reader is not None and not self._reader.is_alive:
                    await self._discard_reader()
                try:
                    if self._reader is None:
                        self._reader = await _Reader.started()
                    return self._reader.new_child()
                except OSError:  # it does not start, or has just ended
                    await self._discard_reader()
        logger.error("the process that reads documents does not start")
        raise _error("internal")

    async def _head(self, connection: socket.socket) -> dict[str, object]:
        (size,) = ANSWER.unpack(await _received(connection, ANSWER.size))
        if size > MAX_HEAD_BYTES:
            raise EOFError
        head = json.loads(await _received(connection, size))
        if not isinstance(head, dict):
            raise EOFError
        return head

    async def _text(self, connection: socket.socket, head: dict[str, object]) -> ExtractedText:
        fault, title, lengths = head.get("fault"), head.get("title"), head.get("lengths")
        if fault == "too_large":
            raise _too_large(f"The text of the document has more than {self._limits.max_characters:,} characters.")
        if fault == "internal":
            logger.error("a document was not read because its child lacks a file")
        if isinstance(fault, str):
            raise _error(fault)
        if not isinstance(lengths, list):
            raise EOFError
        sizes = [size for size in lengths if isinstance(size, int) and size >= 0]
        if sum(sizes) > 4 * self._limits.max_characters:
            raise EOFError
        text = memoryview(await _received(connection, sum(sizes)))
        pages, start = [], 0
        for size in sizes:
            pages.append(str(text[start : start + size], "utf-8", "replace"))
            start += size
        return ExtractedText(title=title if isinstance(title, str) else None, pages=tuple(pages))

    def _began(self) -> None:
        self._in_use += 1
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _ended(self) -> None:
        self._in_use -= 1
        if self._in_use == 0:
            self._idle = asyncio.get_running_loop().call_later(self._idle_timeout_s, self._retire)

    def _retire(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.dismiss()


class _Reader:
    """One reader process, and the socket on which it takes orders."""

    def __init__(self, process: Process, control: socket.socket) -> None:
        self._process = process
        self._control = control

    @classmethod
    async def started(cls) -> "_Reader":
        """A new one that is ready. Raises OSError when it does not get so far."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    *_READER,
                    str(theirs.fileno()),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={},
                    cwd="/",
                    start_new_session=True,  # Ctrl-C is for the service, which ends it in order
                )
            if await asyncio.get_running_loop().sock_recv(ours, 1) != READY:
                raise ConnectionResetError
        except BaseException:
            ours.close()
            raise
        return cls(process, ours)

    @property
    def is_alive(self) -> bool:
        """Asked of its socket, for the news of its end may still be on the way."""
        try:
            return self._process.returncode is None and self._control.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False

    def new_child(self) -> socket.socket:
        """Our end of its socket. Raises OSError when the reader is gone."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._control, [b"j"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    def dismiss(self) -> None:
        """It ends by itself, with its children."""
        self._control.close()

    async def close(self) -> None:
        self._control.close()
        try:
            async with asyncio.timeout(2):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def _received(connection: socket.socket, size: int) -> bytes:
    """Just so many bytes. Raises EOFError when there are fewer."""
    loop = asyncio.get_running_loop()
    buffer = bytearray()
    while len(buffer) < size:
        chunk = await loop.sock_recv(connection, min(_CHUNK_BYTES, size - len(buffer)))
        if not chunk:
            raise EOFError
        buffer += chunk
    return bytes(buffer)


def _error(fault: str) -> ServiceError:
    kind, code, sentence = _FAULTS.get(fault, _FAULTS["unreadable"])
    return ServiceError(code, kind, sentence)


def _too_large(sentence: str) -> ServiceError:
    return ServiceError("extraction_too_large", ErrorKind.LIMIT, sentence)
