"""SearchSources: find the chunks of a thread's sources that match a question best."""

import asyncio
from dataclasses import dataclass

from application.sources.ports import SourceSearch, SourceStore
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId
from domain.sources.ranking import FoundChunk, ranked
from domain.sources.source import Source
from domain.sources.words import SearchQuery

CANDIDATES = 200
"""Chunks that are ranked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSourcesCommand:
    """`question` is free text; `source` restricts the search to sources with that name or id."""

    organization_id: OrganizationId
    thread_id: ThreadId
    question: str
    source: str | None = None
    max_results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesSearched:
    """The best chunks, best first, and the sources that were searched."""

    found: tuple[FoundChunk, ...]
    searched: tuple[Source, ...]


class SearchSources:
    """Rules:
    - Only sources of the thread are searched.
    - A question has no operators.
    - The order does not depend on the database.

    Raises: ServiceError source_not_found; its text lists the existing sources.
    """

    def __init__(self, *, sources: SourceStore, search: SourceSearch) -> None:
        self._sources = sources
        self._search = search

    async def execute(self, command: SearchSourcesCommand) -> SourcesSearched:
        existing = await self._sources.of_thread(command.organization_id, command.thread_id)
        meant = existing
        if command.source is not None:
            meant = tuple(source for source in existing if command.source in {source.name, source.id})
            if not meant:
                raise _no_such(command.source, existing)
        query = SearchQuery.of(command.question)
        if not query.words or not any(source.chunks for source in meant):
            return SourcesSearched(found=(), searched=meant)
        candidates = await self._search.find(
            command.organization_id,
            command.thread_id,
            query,
            source_ids=None if command.source is None else [source.id for source in meant],
            limit=CANDIDATES,
        )
        best = await asyncio.to_thread(ranked, candidates, query, command.max_results)
        return SourcesSearched(found=best, searched=meant)


def _no_such(name: str, existing: tuple[Source, ...]) -> ServiceError:
    shown = ", ".join(repr(source.name) for source in existing[:20])
    there = f"The sources are: {shown}{', …' if len(existing) > 20 else ''}." if existing else "It has no sources."
    detail = f"The thread has no source {name[:200]!r}. {there}"
    return ServiceError("source_not_found", ErrorKind.NOT_FOUND, detail)
