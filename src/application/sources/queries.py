"""Reading the files of threads: one, many, the bytes of one."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from application.sources.ports import SourceStore
from application.sources.source_content import parts_of
from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.threads.ports import ThreadStore
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.ids import SourceId, ThreadId
from domain.sources.source import Source


async def seen_source(sources: SourceStore, principal: Principal, source_id: SourceId) -> Source:
    """Raises NOT_FOUND, also for one of a thread that the caller does not see."""
    found = await sources.get(principal.organization_id, source_id, teams=principal.visible_teams)
    return existing(found, "source", source_id)


class GetSource:
    """Any role may read. Raises: ServiceError source_not_found."""

    def __init__(self, *, sources: SourceStore) -> None:
        self._sources = sources

    async def execute(self, principal: Principal, source_id: SourceId) -> Source:
        """The source without its bytes."""
        return await seen_source(self._sources, principal, source_id)


class ListSources:
    """Any role may read; newest first. Raises: ServiceError thread_not_found."""

    def __init__(self, *, sources: SourceStore, threads: ThreadStore) -> None:
        self._sources = sources
        self._threads = threads

    async def execute(self, principal: Principal, thread_id: ThreadId, page: PageRequest = FIRST_PAGE) -> Page[Source]:
        organization_id = principal.organization_id
        principal.found(await self._threads.get(organization_id, thread_id), "thread", thread_id)
        return await self._sources.page(organization_id, thread_id, page)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContent:
    """A source, and its bytes as a stream."""

    source: Source
    content: AsyncIterator[bytes]


class ReadSource:
    """Any role may read. At most one part is in memory at a time. Raises: ServiceError
    source_not_found."""

    def __init__(self, *, sources: SourceStore) -> None:
        self._sources = sources

    async def execute(self, principal: Principal, source_id: SourceId) -> SourceContent:
        source = await seen_source(self._sources, principal, source_id)
        return SourceContent(source=source, content=parts_of(self._sources, source))
