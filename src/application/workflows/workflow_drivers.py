"""The workflow runs that this process advances. They do not occupy the slots of agents' runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from application.runs.execution.recover_runs import SWEEP_EVERY_S, RecoverRuns
from application.system.periodic import every
from application.system.wakeups import Wakeups
from application.workflows.ports import WORKFLOWS_TOPIC
from domain.ids import WorkflowRunId

logger = logging.getLogger(__name__)


Advance = Callable[[WorkflowRunId], Awaitable[None]]


class WorkflowDrivers:
    """Rules:
    - A run has one driver at a time.
    - A run submitted while it is being advanced is advanced once more after that.
    - A failure of one run does not affect others.
    """

    def __init__(self, *, advance: Advance, recover: RecoverRuns, wakeups: Wakeups) -> None:
        self._wakeups = wakeups
        self._advance = advance
        self._recover = recover
        self._driving: dict[WorkflowRunId, asyncio.Task[None]] = {}
        self._again: set[WorkflowRunId] = set()
        self._stopped = False

    def begin(self, run_id: WorkflowRunId) -> None:
        """Advance the run in the background, if it can be claimed."""
        if self._stopped:
            return
        if run_id in self._driving:
            self._again.add(run_id)
            return
        self._driving[run_id] = asyncio.create_task(self._drive(run_id), name=f"workflow run {run_id}")

    async def stop(self) -> None:
        """Hand all runs back and accept no more."""
        self._stopped = True
        driving = tuple(self._driving.values())
        for task in driving:
            task.cancel()
        if driving:
            await asyncio.wait(driving)

    async def keep(self) -> None:
        """Recover workflow runs periodically and on signals, until cancelled."""
        async with self._wakeups.subscribe(WORKFLOWS_TOPIC) as changed:
            await every(SWEEP_EVERY_S, self._recover.execute, task="workflow-recovery", wait=changed.wait)

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
