"""The loop of periodic tasks."""

import asyncio
import logging

import pytest

from application.system.periodic import every


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
        await every(60.0, step, task="tidy", first_after_s=5.0, sleep=sleeps)
    assert (sleeps.seconds, calls) == ([5.0, 60.0, 60.0], [1, 2])


async def test_jitter_prolongs_each_wait_by_a_share_of_it() -> None:
    sleeps = Sleeps(last=2)

    async def step() -> None:
        pass

    with pytest.raises(asyncio.CancelledError):
        await every(100.0, step, task="tidy", jitter=0.2, sleep=sleeps, fraction=lambda: 0.5)
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
        await every(60.0, step, task="tidy", sleep=sleeps)
    assert calls == 2
    assert [vars(record)["task"] for record in caplog.records] == ["tidy", "tidy"]


async def test_a_cancelled_step_ends_the_loop() -> None:
    async def step() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await every(60.0, step, task="tidy", sleep=Sleeps(last=5))
