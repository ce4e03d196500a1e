"""Deadline, which behaves as `asyncio.timeout_at` does."""

import asyncio

import pytest

from application.system.deadline import Deadline


async def test_what_is_not_over_by_then_is_cancelled_and_raises_a_timeout() -> None:
    deadline = Deadline(asyncio.get_running_loop().time())

    with pytest.raises(TimeoutError), deadline:
        await asyncio.get_running_loop().create_future()

    assert deadline.expired()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_is_over_before_is_left_alone() -> None:
    with Deadline(asyncio.get_running_loop().time() + 3600) as deadline:
        value = await asyncio.sleep(0, "done")

    assert value == "done"
    assert not deadline.expired()


async def test_a_cancellation_from_elsewhere_stays_one() -> None:
    entered = asyncio.Event()

    async def waiting() -> None:
        with Deadline(asyncio.get_running_loop().time() + 3600):
            entered.set()
            await asyncio.get_running_loop().create_future()

    task = asyncio.create_task(waiting())
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_from_elsewhere_wins_over_the_end_of_the_time() -> None:
    entered = asyncio.Event()

    async def waiting() -> None:
        with Deadline(None) as deadline:
            entered.set()
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                deadline.reschedule(asyncio.get_running_loop().time())
                while not deadline.expired():
                    try:
                        await asyncio.sleep(0)
                    except asyncio.CancelledError:
                        continue

    task = asyncio.create_task(waiting())
    await entered.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_deadline_that_is_put_off_does_not_expire() -> None:
    loop = asyncio.get_running_loop()
    with Deadline(loop.time()) as deadline:
        deadline.reschedule(None)
        for _ in range(5):
            await asyncio.sleep(0)

    assert deadline.when() is None
    assert not deadline.expired()


async def test_failures_pass_through() -> None:
    with pytest.raises(ValueError, match="ours"), Deadline(asyncio.get_running_loop().time() + 3600):
        raise ValueError("ours")


async def test_who_moves_a_deadline_once_its_block_is_left_cancels_nothing() -> None:
    with Deadline(None) as deadline:
        await asyncio.sleep(0)

    deadline.reschedule(asyncio.get_running_loop().time())
    for _ in range(5):  # rounds of the loop, in which a timer that is due would fire
        await asyncio.sleep(0)

    assert not deadline.expired()
