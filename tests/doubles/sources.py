"""Sources in memory, and the search over them."""

from collections.abc import Sequence
from datetime import datetime

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found
from domain.ids import ApiKeyId, OrganizationId, SourceId, ThreadId
from domain.sources.ranking import FoundChunk
from domain.sources.source import MAX_SOURCES, IndexedChunk, Source
from domain.sources.words import PREFIX_FROM, SearchQuery
from domain.teams import Teams, sees
from tests.doubles.owners import team_of
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState
from tests.doubles.stored_source import StoredSource


class InMemorySourceIntake:
    """The `SourceIntake` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def begin(self, draft: Source, *, stale_before: datetime) -> None:
        """Make room for a source."""
        sources = self._state.sources
        if self._state.thread_of(draft.organization_id, draft.thread_id) is None:
            raise not_found("thread", draft.thread_id)
        for stored in list(sources.values()):
            known = stored.source
            stale = not stored.finished and known.created_at < stale_before
            if known.organization_id == draft.organization_id and (stale or known.id == draft.id):
                del sources[known.id]
        if sum(stored.source.thread_id == draft.thread_id for stored in sources.values()) >= MAX_SOURCES:
            raise conflict("sources_full", f"A thread may have up to {MAX_SOURCES} sources.")
        sources[draft.id] = StoredSource(source=draft)

    async def put_part(self, draft: Source, position: int, data: bytes) -> None:
        """Store a part."""
        self._draft(draft).parts[position] = data

    async def put_chunks(self, draft: Source, first: int, chunks: Sequence[IndexedChunk]) -> None:
        """Store pieces of its text."""
        self._draft(draft).chunks.update(enumerate(chunks, start=first))

    async def finish(self, source: Source, audit: AuditEvent) -> None:
        """Let it be seen."""
        stored = self._draft(source)
        stored.source, stored.finished = source, True
        self._state.record(audit)

    async def discard(self, draft: Source) -> None:
        """Forget a draft."""
        stored = self._state.sources.get(draft.id)
        if stored is not None and not stored.finished:
            del self._state.sources[draft.id]

    def _draft(self, draft: Source) -> StoredSource:
        stored = self._state.sources.get(draft.id)
        if stored is None or stored.finished:
            raise not_found("source", draft.id)
        return stored


class InMemorySourceCopies:
    """The `SourceCopies` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def fill(self, draft: Source, original: Source) -> bool:
        """Store the same in the draft."""
        stored, copy = self._state.sources.get(original.id), self._state.sources.get(draft.id)
        if copy is None or copy.finished:
            raise not_found("source", draft.id)
        if stored is None or not stored.finished:
            return False
        known = stored.source
        if (known.digest, known.organization_id) != (original.digest, original.organization_id):
            return False
        copy.parts, copy.chunks = dict(stored.parts), dict(stored.chunks)
        return True


class InMemorySourceStore:
    """The `SourceStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def get(self, organization_id: OrganizationId, source_id: SourceId, *, teams: Teams = None) -> Source | None:
        """The source, or None."""
        stored = self._state.sources.get(source_id)
        if stored is None or not stored.finished or stored.source.organization_id != organization_id:
            return None
        return stored.source if sees(teams, team_of(self._state, source_id)) else None

    async def page(self, organization_id: OrganizationId, thread_id: ThreadId, request: PageRequest) -> Page[Source]:
        """Sources of a thread, newest first."""
        found = _finished(self._state, organization_id, thread_id)
        return newest_first((stored.source for stored in found), _by_time, request)

    async def of_thread(self, organization_id: OrganizationId, thread_id: ThreadId) -> tuple[Source, ...]:
        """All sources of a thread, newest first."""
        found = (stored.source for stored in _finished(self._state, organization_id, thread_id))
        return tuple(sorted(found, key=_by_time, reverse=True))

    async def part(self, organization_id: OrganizationId, source_id: SourceId, position: int) -> bytes | None:
        """The part at a position."""
        stored = self._state.sources.get(source_id)
        if stored is None or stored.source.organization_id != organization_id:
            return None
        return stored.parts.get(position)

    async def delete(
        self,
        organization_id: OrganizationId,
        source_id: SourceId,
        audit: AuditEvent,
        *,
        as_runner: ApiKeyId | None = None,
    ) -> bool:
        """Remove it."""
        found = await self.get(organization_id, source_id)
        if found is None:
            return False
        self._state.refuse_if_run_by_others(found.thread_id, as_runner)
        del self._state.sources[source_id]
        self._state.record(audit)
        return True


class InMemorySourceSearch:
    """The `SourceSearch` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def find(
        self,
        organization_id: OrganizationId,
        thread_id: ThreadId,
        query: SearchQuery,
        *,
        source_ids: Sequence[SourceId] | None,
        limit: int,
    ) -> tuple[FoundChunk, ...]:
        """Pieces with at least one of the words, those with most of them first."""
        matches: list[tuple[int, FoundChunk]] = []
        for stored in _finished(self._state, organization_id, thread_id):
            if source_ids is not None and stored.source.id not in source_ids:
                continue
            for position, indexed in stored.chunks.items():
                if hits := _hits(indexed, query):
                    found = FoundChunk(
                        source_id=stored.source.id,
                        source_name=stored.source.name,
                        position=position,
                        chunk=indexed.chunk,
                    )
                    matches.append((hits, found))
        matches.sort(key=lambda match: -match[0])
        return tuple(found for _, found in matches[:limit])


def _finished(state: InMemoryState, organization_id: OrganizationId, thread_id: ThreadId) -> list[StoredSource]:
    return [
        stored
        for stored in state.sources.values()
        if stored.finished and stored.source.organization_id == organization_id and stored.source.thread_id == thread_id
    ]


def _by_time(source: Source) -> tuple[str, str]:
    return by_time(source.created_at, source.id)


def _hits(indexed: IndexedChunk, query: SearchQuery) -> int:
    words = set(indexed.words.split())
    return sum(
        word in words or (len(word) >= PREFIX_FROM and any(other.startswith(word) for other in words))
        for word in query.words
    )
