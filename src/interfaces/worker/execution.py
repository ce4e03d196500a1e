"""Executes submitted runs: consumes the run queue and runs the worker's periodic tasks.

Above: the service, and the worker's process. Below: an open system (`infrastructure.lifecycle`).
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from application.runs.execution import recover_runs
from application.runs.execution.execute_run import ExecuteRunCommand
from application.system.ended import cancelled
from application.system.periodic import every
from domain.ids import RunId, WorkflowRunId, is_workflow_run
from infrastructure.container import Container
from infrastructure.lifecycle import when_storage_available

logger = logging.getLogger(__name__)

DRAIN_S = 10.0
"""How long runs may take to finish the step in hand when the worker stops."""
STOP_S = 5.0
"""How long runs that did not drain may take to end."""
_LOOK_EVERY_S = 60.0
READY_S = 5.0
"""How long a start waits until the worker receives submitted runs. Without a database the worker
keeps trying."""


@asynccontextmanager
async def executing(container: Container) -> AsyncIterator[None]:
    """Execute runs and workflow runs until the block ends, then hand back what is still in hand.

    - On SQLite this process owns HOME: every earlier lease is dead, and its run is recovered at
      once.
    - On PostgreSQL leases of other processes stay valid until they expire.
    """
    queue, active_runs = container.run_queue(), container.active_runs()
    workflow_drivers, called_runs = container.workflow_drivers(), container.called_runs()
    called_runs.attend(lambda run_id: _execute_called(container, run_id))
    await when_storage_available(container, lambda: _recover(container))
    tasks = [
        asyncio.create_task(_consume(container), name="run-queue"),
        asyncio.create_task(active_runs.keep(), name="leases"),
        asyncio.create_task(container.active_workflow_runs().keep(), name="workflow-leases"),
        asyncio.create_task(
            every(recover_runs.SWEEP_EVERY_S, container.recover_runs().execute, task="recovery"), name="recovery"
        ),
        asyncio.create_task(workflow_drivers.keep(), name="workflow-recovery"),
        asyncio.create_task(container.fire_timers().keep(), name="timers"),
        asyncio.create_task(container.deliver_webhooks().keep(), name="webhooks"),
        asyncio.create_task(container.fire_schedules().keep(), name="schedules"),
    ]
    container.readiness().works(*tasks)
    with suppress(TimeoutError):
        async with asyncio.timeout(READY_S):
            await queue.until_attended()
    try:
        yield
    finally:
        container.readiness().stop()
        await workflow_drivers.stop()
        active_runs.drain()
        container.run_memory().drain()
        if not all(await asyncio.gather(queue.drain(DRAIN_S), called_runs.drain(DRAIN_S))):
            active_runs.stop_all()
            await asyncio.gather(queue.drain(STOP_S), called_runs.drain(STOP_S))
        for task in tasks:
            await cancelled(task)


async def finish_runs(container: Container) -> None:
    """Take no more runs, and wait until those in hand have ended or wait for people. Workflow runs
    are handed over at once: they may wait for days."""
    container.readiness().stop()
    await container.workflow_drivers().stop()
    queue = container.run_queue()
    while not await queue.drain(_LOOK_EVERY_S):
        logger.info("draining: runs are still in progress")


async def _consume(container: Container) -> None:
    workflow_drivers = container.workflow_drivers()

    async def execute(run_id: RunId) -> None:
        if is_workflow_run(run_id):
            with container.run_retry_deadline():
                workflow_drivers.begin(WorkflowRunId(run_id))
        else:
            await _execute(container, ExecuteRunCommand(run_id=run_id))

    await container.run_queue().consume(execute, concurrency=container.settings().worker_concurrency)


async def _execute_called(container: Container, run_id: RunId) -> None:
    async with container.run_queue().beside(run_id):
        await _execute(container, ExecuteRunCommand(run_id=run_id, is_called=True))


async def _execute(container: Container, command: ExecuteRunCommand) -> None:
    with container.run_retry_deadline():
        await container.execute_run().execute(command)


async def _recover(container: Container) -> None:
    owns_database = container.settings().postgres_url is None
    recovered = await container.recover_runs().execute(sole_owner=owns_database)
    recovered += await container.recover_workflow_runs().execute(sole_owner=owns_database)
    if recovered:
        logger.info("runs recovered", extra={"runs": recovered})
    if owns_database:
        await container.deliver_webhooks().recover()
