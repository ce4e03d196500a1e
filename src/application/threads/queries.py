"""Reading threads and their messages."""

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.threads.ports import Conversation, ThreadStore
from application.threads.seen_thread import require_seen
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from domain.threads.message import Message
from domain.threads.thread import Thread


class GetThread:
    """Any role may read. A thread of another organization is not found."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, principal: Principal, thread_id: ThreadId) -> Thread:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return principal.found(await self._threads.get(principal.organization_id, thread_id), "thread", thread_id)


class ListQuarantinedThreads:
    """Any role may read; the newest quarantine first."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, principal: Principal, limit: int) -> tuple[Thread, ...]:
        principal.require(Role.VIEWER)
        return await self._threads.quarantined(principal.organization_id, limit, teams=principal.visible_teams)


class ListConversations:
    """Any role may read; newest first, by their first words."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(
        self,
        principal: Principal,
        *,
        search: str = "",
        forked_from: ThreadId | None = None,
        page: PageRequest = FIRST_PAGE,
    ) -> Page[Conversation]:
        """With `search` only those with this text near the beginning of their first message; with
        `forked_from` only forks of this thread."""
        principal.require(Role.VIEWER)
        return await self._threads.conversations(
            principal.organization_id, search.strip(), page.seen_by(principal), forked_from=forked_from
        )


class ListMessages:
    """Any role may read; oldest first, without superseded messages."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, principal: Principal, thread_id: ThreadId, page: PageRequest = FIRST_PAGE) -> Page[Message]:
        """Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        await require_seen(self._threads, principal, thread_id)
        found = await self._threads.messages(organization_id, thread_id, page)
        if not found.items and await self._threads.get(organization_id, thread_id) is None:
            raise not_found("thread", thread_id)
        return found
