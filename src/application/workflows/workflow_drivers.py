"""The workflow runs that this process advances, beside the places for runs of agents: waiting for one takes none."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

from application.runs.ports import RunQueue
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from application.workflows.ports import WORKFLOWS_TOPIC, WorkflowJournal
from domain.ids import RunId, WorkflowRunId

logger = logging.getLogger(__name__)

SWEEP_EVERY_S = 2.0
_BATCH = 1_000
_ALL_LEASES = timedelta(days=1)

Advance = Callable[[WorkflowRunId], Awaitable[None]]


class WorkflowDrivers:
    """Rules: one driver for a run at a time; a ring for one that is being advanced is heard once that is over; a fault of
    one touches no other; the sweep trusts leases, not the queue."""

    def __init__(
        self, *, advance: Advance, journal: WorkflowJournal, queue: RunQueue, wakeups: Wakeups, clock: Clock
    ) -> None:
        self._wakeups = wakeups
        self._advance = advance
        self._journal = journal
        self._queue = queue
        self._clock = clock
        self._driving: dict[WorkflowRunId, asyncio.Task[None]] = {}
        self._again: set[WorkflowRunId] = set()
        self._stopped = False

    def begin(self, run_id: WorkflowRunId) -> None:
        """Advance the run in the background, if it is to be had."""
        if self._stopped:
            return
        if run_id in self._driving:
            self._again.add(run_id)
            return
        self._driving[run_id] = asyncio.create_task(self._drive(run_id), name=f"workflow run {run_id}")

    async def stop(self) -> None:
        """Hand all runs back, and take none any more."""
        self._stopped = True
        driving = tuple(self._driving.values())
        for task in driving:
            task.cancel()
        if driving:
            await asyncio.wait(driving)

    async def recover(self, *, sole_owner: bool = False) -> int:
        """Ring for runs that nobody advances: queued ones, those of lost workers, those whose time has come. With
        `sole_owner`, leases that have not lapsed count as dead."""
        now = self._clock.now()
        lapsed_at = now + (_ALL_LEASES if sole_owner else timedelta(0))
        found = await self._journal.recoverable(leases_lapsed_at=lapsed_at, at=now, limit=_BATCH)
        await self._queue.submit(*(RunId(run_id) for run_id in found))
        return len(found)

    async def keep(self) -> None:
        """Sweep until cancelled, and whenever a run has gone on that a workflow run may have waited for."""
        async with self._wakeups.subscribe(WORKFLOWS_TOPIC) as bell:
            while True:
                await bell.wait(SWEEP_EVERY_S)
                try:
                    await self.recover()
                except Exception:
                    logger.exception("sweep for workflow runs failed")

    async def _drive(self, run_id: WorkflowRunId) -> None:
        try:
            while True:
                self._again.discard(run_id)
                try:
                    await self._advance(run_id)
                except Exception:
                    logger.exception("a workflow run could not be advanced", extra={"workflow_run_id": run_id})
                if run_id not in self._again:
                    return
        finally:
            del self._driving[run_id]
            self._again.discard(run_id)
