"""DeleteThread: remove a conversation with everything in it."""

from dataclasses import dataclass

from application.threads.ports import ThreadStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteThreadCommand:
    """Which thread."""

    principal: Principal
    thread_id: ThreadId


class DeleteThread:
    """Runners and above delete threads; messages, runs, events and calls go with it, audit entries stay.

    A thread with an unfinished run is not deleted.
    """

    def __init__(self, *, threads: ThreadStore) -> None:
        self._threads = threads

    async def execute(self, command: DeleteThreadCommand) -> None:
        """Delete. Raises FORBIDDEN, NOT_FOUND, CONFLICT `thread_busy`."""
        command.principal.require(Role.RUNNER)
        if not await self._threads.delete(command.principal.organization_id, command.thread_id):
            raise not_found("thread", command.thread_id)
