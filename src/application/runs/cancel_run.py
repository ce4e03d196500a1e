"""Cancels a run: at once if nobody executes it, else by asking its worker to stop."""

from dataclasses import dataclass

from application.mcp.ports import ConnectionScope, McpConnections
from application.runs.ports import RunQueue, RunStore
from application.runs.resume_run import require_own_or_operator
from application.runs.trace_ended_run import TraceEndedRun
from application.system.ports import Clock
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import RunId
from domain.runs.run import Run, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRunCommand:
    """The run to stop."""

    principal: Principal
    run_id: RunId


class CancelRun:
    """Rules: a runner may cancel the runs it made, an operator any; cancelling an ended run changes nothing; a run in progress
    ends `cancelled` as soon as its worker has stopped the model and tool calls in flight; the trace of one that nobody
    executes is completed here, and the connections kept for it while it waited are released."""

    def __init__(
        self,
        *,
        runs: RunStore,
        queue: RunQueue,
        connections: McpConnections,
        trace_ended: TraceEndedRun,
        clock: Clock,
    ) -> None:
        self._runs = runs
        self._trace_ended = trace_ended
        self._queue = queue
        self._connections = connections
        self._clock = clock

    async def execute(self, command: CancelRunCommand) -> Run:
        """The run as it stands. Raises NOT_FOUND, FORBIDDEN."""
        command.principal.require(Role.RUNNER)
        organization_id = command.principal.organization_id
        run = await self._runs.get(organization_id, command.run_id)
        if run is None:
            raise not_found("run", command.run_id)
        require_own_or_operator(command.principal, run)
        outcome = await self._runs.request_cancel(
            organization_id, run.id, actor=command.principal.key_id, at=self._clock.now()
        )
        if outcome is None:
            raise not_found("run", command.run_id)
        if outcome.promoted is not None:
            await self._queue.submit(outcome.promoted)
        if not run.status.is_terminal and outcome.run.status is RunStatus.CANCELLED:
            await self._connections.release(ConnectionScope(organization_id=organization_id, run_id=run.id))
            await self._trace_ended.execute(outcome.run)
        return outcome.run
