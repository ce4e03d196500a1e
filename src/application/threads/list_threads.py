"""ListThreads: an organization's threads."""

from dataclasses import dataclass

from application.system.pages import Page, PageRequest
from application.threads.ports import ThreadStore
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ListThreadsCommand:
    principal: Principal
    page: PageRequest = PageRequest()


class ListThreads:
    """Any role may read; newest first."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, command: ListThreadsCommand) -> Page[Thread]:
        command.principal.require(Role.VIEWER)
        return await self._threads.page(command.principal.organization_id, command.page)
