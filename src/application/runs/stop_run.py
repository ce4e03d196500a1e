"""Stops a run, whoever asks for it: at once if nobody executes it, else by asking its worker."""

from application.mcp.ports import ConnectionScope, McpConnections
from application.runs.ports import RunQueue, RunStore
from application.runs.trace_ended_run import TraceEndedRun
from application.system.ports import Clock
from domain.runs.run import Run, RunStatus


class StopRun:
    """Rules: stopping an ended run changes nothing; a run in progress ends `cancelled` as soon as its worker has stopped the
    model and tool calls in flight; the trace of one that nobody executes is completed here, and the connections kept for
    it while it waited are released."""

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
        self._queue = queue
        self._connections = connections
        self._trace_ended = trace_ended
        self._clock = clock

    async def execute(self, run: Run, *, actor: str) -> Run | None:
        """The run, which was read before, as it stands then; None if there is none any more."""
        organization_id = run.organization_id
        outcome = await self._runs.request_cancel(organization_id, run.id, actor=actor, at=self._clock.now())
        if outcome is None:
            return None
        if outcome.promoted is not None:
            await self._queue.submit(outcome.promoted)
        if not run.status.is_terminal and outcome.run.status is RunStatus.CANCELLED:
            await self._connections.release(ConnectionScope(organization_id=organization_id, run_id=run.id))
            await self._trace_ended.execute(outcome.run)
        return outcome.run
