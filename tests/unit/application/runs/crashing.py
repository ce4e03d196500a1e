"""Kills the worker of a run at a step of its choice."""

import asyncio

import pytest
from pytest_mock import MockerFixture

from application.runs.ports import RunJournal, StepOutcome
from domain.runs.lease import Lease
from domain.runs.step import Step
from tests.unit.application.runs.harness import RunHarness


async def crash_after(harness: RunHarness, mocker: MockerFixture, commits: int) -> None:
    """Execute the run rung for last on a worker that is killed when it wants to store a step after
    that many. Its last write still comes, after the run was put back, and is fenced off."""
    stored = 0
    dead, late = asyncio.Event(), asyncio.Event()

    async def commit(lease: Lease, step: Step) -> StepOutcome:
        nonlocal stored
        if stored == commits:
            dead.set()
            await late.wait()
        stored += 1
        return await harness.journal.commit(lease, step)

    journal = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = commit
    journal.append.side_effect = harness.journal.append
    journal.cancel_requested_by.return_value = None
    executing = harness.new_worker(journal=journal).begin(harness.queue.run_ids[-1])
    await dead.wait()
    executing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await executing
    assert await harness.recover() == 1
    late.set()
