"""RequeueRuns: takes runs that no longer progress from their workers, so that others execute
them."""

from dataclasses import dataclass
from datetime import timedelta

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.audit.entries import audit_entry
from application.audit.ports import AuditLog
from application.runs.ports import RunLeases, RunQueue
from application.runs.queue_lines import QueueReader
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import RunId

MOST = 100
"""Runs that one request takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequeueRunsCommand:
    """Runs without a new event for `idle_s`, of the `agent` (id or name) or of all."""

    principal: Principal
    idle_s: float
    agent: str | None = None


class RequeueRuns:
    """Rules:
    - Requires `operator`.
    - The worker of a requeued run writes nothing more of it. Calls that it sent and that are unsafe
      to repeat are not repeated.
    - A run that its worker advances meanwhile, or that ends, stays as it is.
    - Also a run that waits for a long call, or for an agent that it called, has no event meanwhile.
    - At most 100 runs at a time; those before a failure are requeued. Audited as `runs.requeued`
      with their number.
    """

    def __init__(
        self,
        *,
        lines: QueueReader,
        leases: RunLeases,
        queue: RunQueue,
        agents: AgentStore,
        audit_log: AuditLog,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._lines = lines
        self._leases = leases
        self._queue = queue
        self._agents = agents
        self._audit_log = audit_log
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RequeueRunsCommand) -> tuple[RunId, ...]:
        """The requeued runs. Raises FORBIDDEN, NOT_FOUND `agent_not_found`."""
        principal, now = command.principal, self._clock.now()
        principal.require(Permission.RUNS_CONTROL)
        agent_id = None
        if command.agent is not None:
            agent_id = (await existing_agent(self._agents, principal, command.agent)).id
        stuck = await self._lines.stuck(
            principal.organization_id,
            since=now - timedelta(seconds=command.idle_s),
            agent_id=agent_id,
            limit=MOST,
            teams=principal.visible_teams,
        )
        requeued: list[RunId] = []
        try:
            for run in stuck:
                is_taken = await self._leases.take_back(run.lease, seen_seq=run.last_seq)
                if is_taken:
                    requeued.append(run.lease.run_id)
        finally:
            await self._record(principal, requeued, of=agent_id or principal.organization_id)
        return tuple(requeued)

    async def _record(self, principal: Principal, requeued: list[RunId], *, of: str) -> None:
        await self._queue.submit(*requeued)
        audit = audit_entry(
            principal,
            AuditAction.RUNS_REQUEUED,
            of,
            ids=self._ids,
            at=self._clock.now(),
            details={"requeued": len(requeued)},
        )
        await self._audit_log.record(audit)
