"""What the in-process wake-ups promise beyond the port: nothing accumulates."""

import asyncio

import pytest

from infrastructure.events.wakeups import InProcessWakeups


async def test_a_topic_vanishes_with_its_last_listener() -> None:
    wakeups = InProcessWakeups()
    async with wakeups.subscribe("a"):
        async with wakeups.subscribe("a"), wakeups.subscribe("b"):
            assert wakeups.topic_count == 2
        assert wakeups.topic_count == 1
    assert wakeups.topic_count == 0


async def test_topics_that_are_only_woken_take_no_memory() -> None:
    wakeups = InProcessWakeups()
    for number in range(1000):
        wakeups.wake(f"run.events:{number}")
    assert wakeups.topic_count == 0


async def test_a_listener_that_fails_or_is_cancelled_is_forgotten() -> None:
    wakeups = InProcessWakeups()

    async def listen() -> None:
        async with wakeups.subscribe("a") as subscription:
            await subscription.wait(60)

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0)
    assert wakeups.topic_count == 1
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert wakeups.topic_count == 0


async def test_a_listener_may_leave_while_it_and_others_are_being_woken() -> None:
    wakeups = InProcessWakeups()
    async with wakeups.subscribe("a") as staying:
        async with wakeups.subscribe("a") as leaving:
            wakeups.wake("a")
            assert await leaving.wait(1)
        assert await staying.wait(1)
