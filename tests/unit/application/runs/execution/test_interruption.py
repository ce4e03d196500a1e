"""Stopping waits: inside, before, nested, together with other cancellations; never misread, never
swallowed."""

import asyncio

import pytest

from application.runs.execution.interruption import Interrupted, StopReason, StopSignal, TimeUp

FOREVER = 3600.0


async def waiting(stop: StopSignal, began: asyncio.Event, timeout_s: float | None = FOREVER) -> None:
    with stop.interruptible(timeout_s):
        began.set()
        await asyncio.Event().wait()


async def started(stop: StopSignal, timeout_s: float | None = FOREVER) -> "asyncio.Task[None]":
    began = asyncio.Event()
    task = asyncio.create_task(waiting(stop, began, timeout_s))
    await began.wait()
    return task


@pytest.mark.requirement("A12")
async def test_firing_ends_all_waits_with_the_reason() -> None:
    stop = StopSignal()
    tasks = [await started(stop), await started(stop, None)]
    stop.fire(StopReason.CANCELLED)
    for task in tasks:
        with pytest.raises(Interrupted) as caught:
            await task
        assert caught.value.reason is StopReason.CANCELLED
    assert stop.fired is StopReason.CANCELLED


async def test_a_wait_that_begins_after_firing_does_not_begin() -> None:
    stop = StopSignal()
    stop.fire(StopReason.SHUTDOWN)
    began = asyncio.Event()
    with pytest.raises(Interrupted):
        await waiting(stop, began)
    assert not began.is_set()
    with pytest.raises(Interrupted):
        stop.check()


async def test_the_first_reason_stands() -> None:
    stop = StopSignal()
    stop.fire(StopReason.LEASE_LOST)
    stop.fire(StopReason.CANCELLED)
    assert stop.fired is StopReason.LEASE_LOST


async def test_time_that_is_up_is_told_apart_from_a_stop() -> None:
    with pytest.raises(TimeUp):
        await waiting(StopSignal(), asyncio.Event(), 0.001)


async def test_a_timeout_of_somebody_inside_passes_as_it_is() -> None:
    stop = StopSignal()
    with pytest.raises(TimeoutError), stop.interruptible(FOREVER):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="of the pool"), stop.interruptible(FOREVER):
        raise TimeoutError("of the pool")


async def test_a_stop_is_not_taken_for_the_timeout_of_somebody_inside() -> None:
    stop = StopSignal()
    began = asyncio.Event()

    async def nested() -> str:
        try:
            with stop.interruptible(FOREVER):
                try:
                    async with asyncio.timeout(FOREVER):
                        began.set()
                        await asyncio.Event().wait()
                except TimeoutError:
                    return "the inner timeout"
        except Interrupted:
            return "stopped"
        return "nothing"

    task = asyncio.create_task(nested())
    await began.wait()
    stop.fire(StopReason.CANCELLED)
    assert await task == "stopped"


async def test_nested_waits_end_in_the_same_stop() -> None:
    stop = StopSignal()
    began = asyncio.Event()

    async def nested() -> None:
        with stop.interruptible(FOREVER):
            await waiting(stop, began)

    task = asyncio.create_task(nested())
    await began.wait()
    stop.fire(StopReason.CANCELLED)
    with pytest.raises(Interrupted):
        await task


async def test_firing_while_a_wait_whose_time_is_up_still_cleans_up_ends_the_others() -> None:
    stop = StopSignal()
    cleaning, finish = asyncio.Event(), asyncio.Event()

    async def slow_to_end() -> None:
        with stop.interruptible(0.001):
            try:
                await asyncio.Event().wait()
            finally:
                cleaning.set()
                await finish.wait()

    first = asyncio.create_task(slow_to_end())
    second = await started(stop)
    await cleaning.wait()
    stop.fire(StopReason.CANCELLED)
    with pytest.raises(Interrupted):
        await second
    finish.set()
    with pytest.raises(Interrupted):
        await first


async def test_cancelling_the_task_itself_is_not_swallowed() -> None:
    stop = StopSignal()
    task = await started(stop)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_cancelling_the_task_as_the_stop_fires_is_not_swallowed() -> None:
    stop = StopSignal()
    task = await started(stop)
    stop.fire(StopReason.CANCELLED)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.requirement("E7")
async def test_draining_ends_no_wait_but_stops_at_the_next_check() -> None:
    stop = StopSignal()
    with stop.interruptible(FOREVER):
        stop.drain()
        await asyncio.sleep(0)
    assert stop.fired is None
    with pytest.raises(Interrupted) as caught:
        stop.check()
    assert caught.value.reason is StopReason.SHUTDOWN


async def test_a_wait_that_is_over_is_forgotten() -> None:
    stop = StopSignal()
    with stop.interruptible(0.001):
        pass
    stop.fire(StopReason.CANCELLED)
    await asyncio.sleep(0)
