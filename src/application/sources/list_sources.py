"""ListSources: the files of a thread."""

from dataclasses import dataclass

from application.sources.ports import SourceStore
from application.system.pages import Page, PageRequest
from application.threads.ports import ThreadStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import ThreadId
from domain.sources.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSourcesCommand:
    principal: Principal
    thread_id: ThreadId
    page: PageRequest = PageRequest()


class ListSources:
    """Any role may read; newest first. Raises: ServiceError thread_not_found."""

    def __init__(self, *, sources: SourceStore, threads: ThreadStore) -> None:
        self._sources = sources
        self._threads = threads

    async def execute(self, command: ListSourcesCommand) -> Page[Source]:
        organization_id = command.principal.organization_id
        if await self._threads.get(organization_id, command.thread_id) is None:
            raise not_found("thread", command.thread_id)
        return await self._sources.page(organization_id, command.thread_id, command.page)
