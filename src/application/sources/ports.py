"""Ports of the sources slice: files of threads, their intake, and full-text search."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import ApiKeyId, OrganizationId, SourceId, ThreadId
from domain.sources.ranking import FoundChunk
from domain.sources.source import IndexedChunk, Source
from domain.sources.words import SearchQuery
from domain.teams import Teams

PART_BYTES = 1024 * 1024
"""The size of the parts in which sources are stored and read. It bounds the data in one
transaction."""


class SourceIntake(Protocol):
    """A source during its upload. It is invisible until it is finished."""

    async def begin(self, draft: Source, *, stale_before: datetime) -> None:
        """Create a draft, replacing a source with the same id, and remove the organization's drafts
        that began before `stale_before`. Raises NOT_FOUND without the thread, CONFLICT
        `sources_full`."""

    async def put_part(self, draft: Source, position: int, data: bytes) -> None:
        """Store a part; positions count from 0. Raises NOT_FOUND if the draft is gone."""

    async def put_chunks(self, draft: Source, first: int, chunks: Sequence[IndexedChunk]) -> None:
        """Store chunks of its text; the first one has the position `first`. Raises NOT_FOUND if the
        draft is gone."""

    async def finish(self, source: Source, audit: AuditEvent) -> None:
        """Make the source visible. Raises NOT_FOUND if the draft is gone."""

    async def discard(self, draft: Source) -> None:
        """Remove a draft with its parts and chunks."""


class SourceCopies(Protocol):
    async def fill(self, draft: Source, original: Source) -> bool:
        """Store the original's bytes and chunks in the draft, too. False if the original was
        deleted or replaced meanwhile: the draft then is not whole. Raises NOT_FOUND if the draft is
        gone."""


class SourceStore(Protocol):
    async def get(self, organization_id: OrganizationId, source_id: SourceId, *, teams: Teams = None) -> Source | None:
        """The source, or None; of threads that teams own, only of those of `teams`."""

    async def page(self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest) -> Page[Source]:
        """Sources of a thread, newest first."""

    async def of_thread(self, organization_id: OrganizationId, thread_id: ThreadId) -> tuple[Source, ...]:
        """All sources of a thread, newest first. Their number is bounded."""

    async def part(self, organization_id: OrganizationId, source_id: SourceId, position: int) -> bytes | None:
        """The part at a position, also of a draft; None after the last one."""

    async def delete(
        self,
        organization_id: OrganizationId,
        source_id: SourceId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        """Remove the source with its bytes and chunks. False if it does not exist. With
        `as_runner`, only from a thread without runs of other keys; else raises FORBIDDEN
        `thread_not_yours`."""


class SourceSearch(Protocol):
    async def find(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        query: SearchQuery,
        *,
        source_ids: Sequence[SourceId] | None,
        limit: int,
    ) -> tuple[FoundChunk, ...]:
        """Chunks with at least one of the words, optionally of some sources only, unordered. If
        more than `limit` match, those that probably match best."""
