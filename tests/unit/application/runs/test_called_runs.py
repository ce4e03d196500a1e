"""Runs that are executed for the runs of a worker that called them."""

import asyncio
import logging

import pytest

from application.runs.called_runs import CalledRuns
from domain.ids import RunId
from tests.builders import RUN

pytestmark = pytest.mark.requirement("F5")


class Executing:
    """Executes runs until released."""

    def __init__(self) -> None:
        self.begun: list[RunId] = []
        self.released = asyncio.Event()

    async def execute(self, run_id: RunId) -> None:
        self.begun.append(run_id)
        await self.released.wait()


async def test_a_run_is_executed_once_at_a_time_and_again_after_it_left() -> None:
    executing, called = Executing(), CalledRuns()
    called.attend(executing.execute)
    called.begin(RUN)
    called.begin(RUN)
    called.begin(RunId("run_other"))
    await asyncio.sleep(0)
    assert executing.begun == [RUN, "run_other"]
    executing.released.set()
    await asyncio.sleep(0.001)
    called.begin(RUN)
    assert await called.drain(60)
    assert executing.begun == [RUN, "run_other", RUN]


async def test_a_process_that_executes_no_runs_or_drains_begins_none() -> None:
    executing, called = Executing(), CalledRuns()
    called.begin(RUN)
    called.attend(executing.execute)
    called.begin(RunId("run_other"))
    await asyncio.sleep(0)
    assert not await called.drain(0)
    called.begin(RUN)
    executing.released.set()
    assert await called.drain(60)
    assert executing.begun == ["run_other"]


async def test_a_failure_is_logged_and_is_nobody_elses(caplog: pytest.LogCaptureFixture) -> None:
    called = CalledRuns()

    async def fail(run_id: RunId) -> None:
        raise RuntimeError("broken")

    called.attend(fail)
    with caplog.at_level(logging.ERROR):
        called.begin(RUN)
        assert await called.drain(60)
    assert "called run could not be handled" in caplog.text
