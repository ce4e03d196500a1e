"""Stops a run: at once if no worker executes it, otherwise by a request to its worker."""

from application.mcp.ports import ConnectionScope, McpConnections
from application.runs.ports import RunQueue, RunStore
from application.runs.trace_ended_run import TraceEndedRun
from application.system.ports import Clock
from domain.runs.run import Run, RunStatus
from domain.runs.stopping import Cancellation


class StopRun:
    """Rules:
    - `Cancellation` decides: an ended run stays unchanged, a run in progress is requested to
      stop, any other ends at once.
    - A run in progress ends `cancelled` once its worker has stopped its model and tool calls.
    - For a run without a worker, the trace is completed and the connections are released.
    - The thread's next run is submitted.
    """

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
        """The run after the stop; None if it was deleted."""
        organization_id = run.organization_id
        cancellation = Cancellation(actor=actor, at=self._clock.now())
        changed = await self._runs.change(organization_id, run.id, cancellation.decide)
        if changed is None:
            return None
        if changed.promoted is not None:
            await self._queue.submit(changed.promoted)
        if not run.status.is_terminal and changed.run.status is RunStatus.CANCELLED:
            await self._connections.release(ConnectionScope(organization_id=organization_id, run_id=run.id))
            await self._trace_ended.execute(changed.run)
        return changed.run
