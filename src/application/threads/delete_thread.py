"""DeleteThread: delete a conversation and its content."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from application.threads.seen_thread import require_seen
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteThreadCommand:
    principal: Principal
    thread_id: ThreadId


class DeleteThread:
    """Rules:
    - Requires `runner`; `operator` if another key has run agents on the thread.
    - Messages, runs, events and calls are deleted too; audit entries stay.
    - A thread with an unfinished run is not deleted.
    - Audited as `thread.deleted`.

    Raises: ServiceError role_insufficient, thread_not_found, thread_not_yours, thread_busy,
    thread_quarantined.
    """

    def __init__(self, *, threads: ThreadStore, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteThreadCommand) -> None:
        principal = command.principal
        principal.require(Permission.RUNS_START)
        audit = audit_entry(
            principal, AuditAction.THREAD_DELETED, command.thread_id, ids=self._ids, at=self._clock.now()
        )
        await require_seen(self._threads, principal, command.thread_id)
        as_runner = None if principal.may(Permission.RUNS_CONTROL) else principal.key_id
        if not await self._threads.delete(principal.organization_id, command.thread_id, audit, as_runner=as_runner):
            raise not_found("thread", command.thread_id)
