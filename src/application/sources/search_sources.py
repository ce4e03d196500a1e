"""SearchSources: finds the pieces of a thread's sources that fit a question best."""

import asyncio
from dataclasses import dataclass

from application.sources.ports import SourceSearch, SourceStore
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId
from domain.sources.ranking import FoundChunk, ranked
from domain.sources.source import Source
from domain.sources.words import SearchQuery

CANDIDATES = 200
"""Pieces that are compared with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSourcesCommand:
    """A question in any form; `source` is the name or the id of the only sources meant."""

    organization_id: OrganizationId
    thread_id: ThreadId
    question: str
    source: str | None = None
    max_results: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesSearched:
    """The pieces found, best first, and the sources that were looked through."""

    found: tuple[FoundChunk, ...]
    searched: tuple[Source, ...]


class SearchSources:
    """Rules: the thread's own sources only; nothing in a question is an operator; the order is the same whichever
    database is below."""

    def __init__(self, *, sources: SourceStore, search: SourceSearch) -> None:
        self._sources = sources
        self._search = search

    async def execute(self, command: SearchSourcesCommand) -> SourcesSearched:
        """Raises NOT_FOUND `source_not_found`, whose text names the sources there are."""
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
