"""ListMessages: read the messages of a thread."""

from dataclasses import dataclass

from application.system.pages import Page, PageRequest
from application.threads.ports import ThreadStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from domain.threads.message import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMessagesCommand:
    principal: Principal
    thread_id: ThreadId
    page: PageRequest = PageRequest()


class ListMessages:
    """Any role may read; oldest first, without superseded messages."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, command: ListMessagesCommand) -> Page[Message]:
        """Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        page = await self._threads.messages(organization_id, command.thread_id, command.page)
        if not page.items and await self._threads.get(organization_id, command.thread_id) is None:
            raise not_found("thread", command.thread_id)
        return page
