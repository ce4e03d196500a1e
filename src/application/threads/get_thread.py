"""GetThread: read one thread, without its messages."""

from dataclasses import dataclass

from application.threads.ports import ThreadStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class GetThreadCommand:
    principal: Principal
    thread_id: ThreadId


class GetThread:
    """Any role may read. A thread of another organization is not found."""

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, command: GetThreadCommand) -> Thread:
        """Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        thread = await self._threads.get(command.principal.organization_id, command.thread_id)
        if thread is None:
            raise not_found("thread", command.thread_id)
        return thread
