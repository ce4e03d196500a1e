"""Waiting for a task to be over: whatever it comes to, and whatever becomes of whoever waits."""

import asyncio

import pytest

from application.system.ended import ended


async def failing() -> None:
    raise RuntimeError("as it happens")


async def until(event: asyncio.Event) -> None:
    await event.wait()


async def test_a_task_that_fails_is_over_and_keeps_its_failure() -> None:
    task = asyncio.create_task(failing())
    await ended(task)
    with pytest.raises(RuntimeError, match="as it happens"):
        task.result()


async def test_a_task_that_is_cancelled_is_over() -> None:
    task = asyncio.create_task(until(asyncio.Event()))
    await asyncio.sleep(0)
    task.cancel()
    await ended(task)
    assert task.cancelled()
    await ended(task)  # as it was before


async def test_whoever_is_cancelled_while_waiting_leaves_the_task_alone() -> None:
    finish = asyncio.Event()
    task = asyncio.create_task(until(finish))
    waiting = asyncio.create_task(ended(task))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not task.done()
    finish.set()
    await task
