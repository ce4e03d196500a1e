"""The loop of periodic tasks."""

import asyncio
import logging

import pytest

from application.system.periodic import every, when_due
from tests.refusals import storage_away


class Sleeps:
    """Records the seconds, and ends the loop at the sleep numbered `last`."""

    def __init__(self, last: int) -> None:
        self.seconds: list[float] = []
        self._last = last

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._last:
            raise asyncio.CancelledError


async def test_the_task_waits_before_each_call_and_the_first_wait_may_differ() -> None:
    sleeps, calls = Sleeps(last=3), []

    async def step() -> None:
        calls.append(len(sleeps.seconds))

    with pytest.raises(asyncio.CancelledError):
        await every(60.0, step, task="tidy", first_after_s=5.0, wait=sleeps)
    assert (sleeps.seconds, calls) == ([5.0, 60.0, 60.0], [1, 2])


async def test_jitter_prolongs_each_wait_by_a_share_of_it() -> None:
    sleeps = Sleeps(last=2)

    async def step() -> None:
        pass

    with pytest.raises(asyncio.CancelledError):
        await every(100.0, step, task="tidy", jitter=0.2, wait=sleeps, fraction=lambda: 0.5)
    assert sleeps.seconds == pytest.approx([110.0, 110.0])


async def test_a_failure_is_logged_with_the_task_and_the_next_call_comes_as_usual(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sleeps, calls = Sleeps(last=3), 0

    async def step() -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("no")

    with caplog.at_level(logging.ERROR), pytest.raises(asyncio.CancelledError):
        await every(60.0, step, task="tidy", wait=sleeps)
    assert calls == 2
    assert [vars(record)["task"] for record in caplog.records] == ["tidy", "tidy"]


async def test_a_cancelled_step_ends_the_loop() -> None:
    async def step() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await every(60.0, step, task="tidy", wait=Sleeps(last=5))


async def test_after_a_failure_another_wait_may_be_given() -> None:
    sleeps = Sleeps(last=4)
    outcomes = iter([RuntimeError("no"), None, None])

    async def step() -> None:
        if failure := next(outcomes):
            raise failure

    with pytest.raises(asyncio.CancelledError):
        await every(60.0, step, task="tidy", retry_s=6.0, wait=sleeps)
    assert sleeps.seconds == [60.0, 6.0, 60.0, 60.0]


async def test_a_task_that_says_when_it_is_due_is_called_at_once_and_then() -> None:
    sleeps, calls = Sleeps(last=3), []
    waits = iter([5.0, 0.0, 7.0])

    async def step() -> float:
        calls.append(len(sleeps.seconds))
        return next(waits)

    with pytest.raises(asyncio.CancelledError):
        await when_due(step, task="tidy", retry_s=1.0, wait=sleeps)
    assert (sleeps.seconds, calls) == ([5.0, 0.0, 7.0], [0, 1, 2])


@pytest.mark.parametrize(
    ("failure", "level", "has_traceback"),
    [(storage_away(), "WARNING", False), (RuntimeError("no"), "ERROR", True)],
)
async def test_a_database_that_is_away_is_a_line_and_any_other_failure_a_traceback(
    caplog: pytest.LogCaptureFixture, failure: Exception, level: str, has_traceback: bool
) -> None:
    sleeps = Sleeps(last=1)

    async def step() -> float:
        raise failure

    with pytest.raises(asyncio.CancelledError):
        await when_due(step, task="tidy", retry_s=3.0, wait=sleeps)
    [record] = caplog.records
    assert (sleeps.seconds, record.levelname, record.exc_info is not None) == ([3.0], level, has_traceback)
    assert vars(record)["task"] == "tidy"
