"""Ports of the sources slice: files of threads, how they come in, and the search over their text."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId, SourceId, ThreadId
from domain.sources.ranking import FoundChunk
from domain.sources.source import IndexedChunk, Source
from domain.sources.words import SearchQuery

PART_BYTES = 1024 * 1024
"""In how large parts the bytes of a source are stored and read: no more of it is ever in one transaction."""


class SourceIntake(Protocol):
    """A source on its way in. Nobody sees it before it is finished."""

    async def begin(self, draft: Source, *, stale_before: datetime) -> None:
        """Make room for a source, in place of one with its id if there is one, and forget drafts of its organization that
        were begun before `stale_before`. Raises NOT_FOUND without the thread, CONFLICT `sources_full`."""
        ...

    async def put_part(self, draft: Source, position: int, data: bytes) -> None:
        """Store the part at a position, which counts from 0. Raises NOT_FOUND if the draft is gone."""
        ...

    async def put_chunks(self, draft: Source, first: int, chunks: Sequence[IndexedChunk]) -> None:
        """Store pieces of its text, of which the first has the position `first`. Raises NOT_FOUND if the draft is
        gone."""
        ...

    async def finish(self, source: Source, audit: AuditEvent) -> None:
        """Let it be seen, as it is now. Raises NOT_FOUND if the draft is gone."""
        ...

    async def discard(self, draft: Source) -> None:
        """Forget a draft with all that came with it."""
        ...


class SourceStore(Protocol):
    """Finished sources."""

    async def get(self, organization_id: OrganizationId, source_id: SourceId) -> Source | None:
        """The source, or None."""
        ...

    async def page(self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest) -> Page[Source]:
        """Sources of a thread, newest first."""
        ...

    async def of_thread(self, organization_id: OrganizationId, thread_id: ThreadId) -> tuple[Source, ...]:
        """All sources of a thread, newest first: a bounded number."""
        ...

    async def part(self, organization_id: OrganizationId, source_id: SourceId, position: int) -> bytes | None:
        """The part at a position, drafts' too; None after the last one."""
        ...

    async def delete(self, organization_id: OrganizationId, source_id: SourceId, audit: AuditEvent) -> bool:
        """Remove it with its bytes and pieces. False if there is none."""
        ...


class SourceSearch(Protocol):
    """Full-text search."""

    async def find(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        query: SearchQuery,
        *,
        source_ids: Sequence[SourceId] | None,
        limit: int,
    ) -> tuple[FoundChunk, ...]:
        """Pieces with at least one of the words, of these sources only if they are named; when there are more than
        `limit`, those that probably fit best. In no particular order."""
        ...
