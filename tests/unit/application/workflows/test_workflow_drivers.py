"""The workflow runs that a process advances: one driver each, no ring lost, all handed back at the
end."""

import asyncio

import pytest

from application.runs.execution.recover_runs import RecoverRuns
from application.workflows.workflow_drivers import WorkflowDrivers
from domain.ids import RunId, WorkflowRunId
from tests.unit.application.workflows.workflow_harness import RUN, WorkflowHarness
from tests.workflow_builders import entrypoint


class Rung:
    """A `RunQueue` that remembers."""

    def __init__(self) -> None:
        self.rung: list[RunId] = []

    async def submit(self, *run_ids: RunId) -> None:
        self.rung += run_ids


class Advancing:
    """Advances when it is told to."""

    def __init__(self) -> None:
        self.begun: asyncio.Queue[WorkflowRunId] = asyncio.Queue()
        self.go: asyncio.Queue[Exception | None] = asyncio.Queue()
        self.cancelled = 0

    async def __call__(self, run_id: WorkflowRunId) -> None:
        self.begun.put_nowait(run_id)
        try:
            fault = await self.go.get()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if fault is not None:
            raise fault


def drivers(advancing: Advancing, queue: Rung, harness: WorkflowHarness) -> WorkflowDrivers:
    return WorkflowDrivers(advance=advancing, recover=recovering(queue, harness), wakeups=harness.wakeups)


def recovering(queue: Rung, harness: WorkflowHarness) -> RecoverRuns:
    return RecoverRuns(leases=harness.journal, queue=queue, clock=harness.clock)


async def next_of(advancing: Advancing) -> WorkflowRunId:
    return await asyncio.wait_for(advancing.begun.get(), 5)


async def test_a_ring_for_a_run_that_is_being_advanced_is_heard_after_it() -> None:
    advancing, harness = Advancing(), WorkflowHarness(entrypoint())
    driving = drivers(advancing, Rung(), harness)
    driving.begin(RUN)
    assert await next_of(advancing) == RUN
    driving.begin(RUN)
    driving.begin(RUN)
    assert advancing.begun.empty()
    advancing.go.put_nowait(None)
    assert await next_of(advancing) == RUN
    advancing.go.put_nowait(None)
    await driving.stop()
    assert advancing.begun.empty()


async def test_a_fault_of_one_run_leaves_others_and_its_own_next_ring_alone() -> None:
    advancing, harness = Advancing(), WorkflowHarness(entrypoint())
    driving = drivers(advancing, Rung(), harness)
    driving.begin(RUN)
    await next_of(advancing)
    driving.begin(RUN)
    advancing.go.put_nowait(RuntimeError("broken"))
    assert await next_of(advancing) == RUN
    await driving.stop()


async def test_stopping_ends_every_driver_and_begins_none() -> None:
    advancing, harness = Advancing(), WorkflowHarness(entrypoint())
    driving = drivers(advancing, Rung(), harness)
    for number in range(3):
        driving.begin(WorkflowRunId(f"wfr_{number}"))
        await next_of(advancing)
    await driving.stop()
    assert advancing.cancelled == 3
    driving.begin(RUN)
    assert advancing.begun.empty()


@pytest.mark.requirement("E7", "F4")
async def test_what_nobody_advances_is_rung_for() -> None:
    queue, harness = Rung(), WorkflowHarness(entrypoint())
    recover = recovering(queue, harness)
    assert await recover.execute() == 0
    await harness.start()
    assert await recover.execute() == 1
    await harness.killed_at(1)
    queue.rung.clear()
    assert await recover.execute() == 1
    assert queue.rung == [RunId(RUN)]


async def test_who_owns_the_database_alone_need_not_wait_for_leases() -> None:
    queue, harness = Rung(), WorkflowHarness(entrypoint())
    recover = recovering(queue, harness)
    await harness.start()
    claimed = await harness.journal.claim(RUN, harness.worker_id, lease_s=15, at=harness.clock.now())
    assert claimed is not None
    assert await recover.execute() == 0
    assert await recover.execute(sole_owner=True) == 1
