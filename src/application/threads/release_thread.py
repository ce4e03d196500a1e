"""ReleaseThread: end the quarantine of a thread after a canary token halted its run."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.runs.ports import RunQueue
from application.system.ports import Clock, IdSource
from application.threads.ports import ThreadStore
from domain.audit.event import AuditAction
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ThreadId
from domain.threads.thread import Thread


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseThreadCommand:
    principal: Principal
    thread_id: ThreadId


class ReleaseThread:
    """Rules:
    - Requires `operator`.
    - The run that waits for the release starts.
    - Audited as `thread.released`.

    Raises: ServiceError role_insufficient, thread_not_found, thread_not_quarantined.
    """

    def __init__(self, *, threads: ThreadStore, queue: RunQueue, clock: Clock, ids: IdSource) -> None:
        self._threads = threads
        self._queue = queue
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ReleaseThreadCommand) -> Thread:
        principal = command.principal
        principal.require(Permission.THREADS_RELEASE)
        thread = principal.found(
            await self._threads.get(principal.organization_id, command.thread_id), "thread", command.thread_id
        )
        quarantine = thread.quarantine
        audit = audit_entry(
            principal,
            AuditAction.THREAD_RELEASED,
            thread.id,
            ids=self._ids,
            at=self._clock.now(),
            details={}
            if quarantine is None
            else {"canary_id": quarantine.canary_id, "halted_run_id": quarantine.run_id},
        )
        released = existing(
            await self._threads.release(principal.organization_id, thread.id, audit), "thread", command.thread_id
        )
        if released.promoted is not None:
            await self._queue.submit(released.promoted)
        return released.thread
