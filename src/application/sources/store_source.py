"""StoreSource: store the bytes of a source part by part, index its text, and make it visible."""

import asyncio
import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import islice

from application.extraction.ports import TextExtractor
from application.sources.ports import PART_BYTES, SourceIntake, SourceStore
from application.sources.source_content import parts_of
from application.system.ports import Clock
from domain.audit.event import AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, RunId, SourceId, ThreadId
from domain.sources.chunking import chunks_of, chunks_of_pages, decoded
from domain.sources.source import (
    MAX_SOURCE_BYTES,
    IndexedChunk,
    Source,
    SourceChunk,
    SourceKind,
    kind_of,
    require_name,
)
from domain.sources.words import words_of

CHUNKS_IN_A_STEP = 100
MAX_CHUNKS = 60_000
"""Most searchable chunks of one source."""
MAX_LINES = 2_000_000
"""Most searchable lines of one source. Many millions of very short lines would take too long."""
EXTRACTION_TIMEOUT_S = 60.0
MAX_READ_AT_ONCE = 2
"""Most sources with their text in memory at the same time."""
STALE_AFTER = timedelta(hours=1)
"""A draft of this age is abandoned: its upload has ended."""

_MEDIA_TYPES = {SourceKind.HTML: "text/html", SourceKind.PDF: "application/pdf"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSourceCommand:
    """A file for a thread. `audit` builds the audit entry."""

    source_id: SourceId
    organization_id: OrganizationId
    thread_id: ThreadId
    name: str
    content: AsyncIterable[bytes]
    audit: Callable[[Source], AuditEvent]
    run_id: RunId | None = None


class StoreSource:
    """Rules:
    - At most 50 MiB; only one part is in memory during the upload.
    - Text of HTML and PDF files is extracted in another process.
    - A source without readable text is stored, with the reason in `problem`.
    - An interrupted upload leaves nothing.
    - A source with an existing id is replaced, so that a repeated tool call creates no duplicate.

    Raises: ServiceError source_name_invalid, thread_not_found, sources_full, source_too_large.
    """

    def __init__(self, *, intake: SourceIntake, sources: SourceStore, extractor: TextExtractor, clock: Clock) -> None:
        self._intake = intake
        self._sources = sources
        self._extractor = extractor
        self._clock = clock
        self._reading = asyncio.Semaphore(MAX_READ_AT_ONCE)

    async def execute(self, command: StoreSourceCommand) -> Source:
        require_name(command.name)
        now = self._clock.now()
        draft = Source(
            id=command.source_id,
            organization_id=command.organization_id,
            thread_id=command.thread_id,
            name=command.name,
            kind=SourceKind.FILE,
            size=0,
            digest="",
            created_at=now,
            run_id=command.run_id,
        )
        await self._intake.begin(draft, stale_before=now - STALE_AFTER)
        try:
            received = await self._receive(draft, command.content)
            source = await self._read(received)
            await self._intake.finish(source, command.audit(source))
        except BaseException:
            with suppress(ServiceError):  # an abandoned draft is removed later
                await self._intake.discard(draft)
            raise
        return source

    async def _receive(self, draft: Source, content: AsyncIterable[bytes]) -> Source:
        digest = hashlib.sha256()
        size = 0
        beginning = b""
        position = 0
        async for part in _in_parts(content):
            size += len(part)
            if size > MAX_SOURCE_BYTES:
                raise _too_large()
            digest.update(part)
            if position == 0:
                beginning = part
            await self._intake.put_part(draft, position, part)
            position += 1
        return replace(draft, size=size, digest=digest.hexdigest(), kind=kind_of(draft.name, beginning))

    async def _read(self, source: Source) -> Source:
        if source.kind is SourceKind.FILE:
            return source
        async with self._reading:
            content = b"".join([part async for part in parts_of(self._sources, source)])
            try:
                chunks = await self._chunks(source.kind, content)
            except ServiceError as error:
                return replace(source, problem=error.detail)
            del content
            return await self._store_chunks(source, chunks)

    async def _chunks(self, kind: SourceKind, content: bytes) -> Iterator[SourceChunk]:
        media_type = _MEDIA_TYPES.get(kind)
        if media_type is None:
            return chunks_of(await asyncio.to_thread(decoded, content), kind)
        document = await self._extractor.extract(content, media_type, timeout_s=EXTRACTION_TIMEOUT_S)
        if kind is SourceKind.PDF:
            return chunks_of_pages(document.pages)
        return chunks_of(document.text, SourceKind.MARKDOWN)

    async def _store_chunks(self, source: Source, chunks: Iterator[SourceChunk]) -> Source:
        count = lines = 0
        while count < MAX_CHUNKS and lines < MAX_LINES:
            # Cutting takes time; the event loop stays free meanwhile.
            step = await asyncio.to_thread(_next_step, chunks)
            if not step:
                return replace(source, chunks=count)
            await self._intake.put_chunks(source, count, step)
            count += len(step)
            lines += sum(indexed.chunk.end_line - indexed.chunk.start_line + 1 for indexed in step)
        return replace(source, chunks=count, problem=f"Only the first {count} chunks of the text can be searched.")


async def _in_parts(content: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The same bytes in parts of equal size; the last one may be smaller."""
    gathered = bytearray()
    async for data in content:
        gathered += data
        while len(gathered) >= PART_BYTES:
            yield bytes(gathered[:PART_BYTES])
            del gathered[:PART_BYTES]
    if gathered:
        yield bytes(gathered)


def _next_step(chunks: Iterator[SourceChunk]) -> list[IndexedChunk]:
    return [
        IndexedChunk(chunk=chunk, words=" ".join(words_of(chunk.found_by)))
        for chunk in islice(chunks, CHUNKS_IN_A_STEP)
    ]


def _too_large() -> ServiceError:
    megabytes = MAX_SOURCE_BYTES // (1024 * 1024)
    return ServiceError("source_too_large", ErrorKind.TOO_LARGE, f"A source may have up to {megabytes} MiB.")
