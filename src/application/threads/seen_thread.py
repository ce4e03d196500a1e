"""Whether a caller sees a thread."""

from typing import Protocol

from domain.identity.api_key import Principal
from domain.ids import OrganizationId, ThreadId
from domain.threads.thread import Thread


class ThreadLookup(Protocol):
    async def get(self, organization_id: OrganizationId, thread_id: ThreadId) -> Thread | None: ...


async def require_seen(threads: ThreadLookup, principal: Principal, thread_id: ThreadId) -> None:
    """Raises NOT_FOUND `thread_not_found` for a thread of a team that the caller does not see.
    Reads nothing for who sees every team's, so that a missing thread is left to what follows."""
    if principal.visible_teams is not None:
        principal.found(await threads.get(principal.organization_id, thread_id), "thread", thread_id)
