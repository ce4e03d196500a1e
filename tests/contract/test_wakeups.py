"""The contract of `Wakeups`. A wake-up may come from afar, so positive waits have seconds; negative
ones only look."""

import asyncio

import pytest

from application.runs.ports import control_topic, events_topic, status_topic
from domain.ids import RunId
from tests.contract.stores import Stores

SOON_S = 60.0


@pytest.mark.requirement("E6")
async def test_a_waiting_listener_is_woken(stores: Stores) -> None:
    async with stores.wakeups.subscribe("run.events:1") as subscription:
        waiting = asyncio.create_task(subscription.wait(SOON_S))
        await asyncio.sleep(0)
        stores.wakeups.wake("run.events:1")
        assert await waiting


@pytest.mark.requirement("E6")
async def test_a_wake_up_between_two_waits_is_not_lost(stores: Stores) -> None:
    async with stores.wakeups.subscribe("run.events:1") as subscription:
        stores.wakeups.wake("run.events:1")
        assert await subscription.wait(SOON_S)
        stores.wakeups.wake("run.events:1")
        assert await subscription.wait(SOON_S)


async def test_without_a_wake_up_the_wait_ends_with_the_time(stores: Stores) -> None:
    async with stores.wakeups.subscribe("run.events:1") as subscription:
        assert not await subscription.wait(0)
        assert not await subscription.wait(0.01)


async def test_one_wake_up_ends_one_wait_only(stores: Stores) -> None:
    async with stores.wakeups.subscribe("run.events:1") as subscription:
        stores.wakeups.wake("run.events:1")
        assert await subscription.wait(SOON_S)
        assert not await subscription.wait(0)


async def test_all_listeners_of_a_topic_are_woken_and_nobody_else(stores: Stores) -> None:
    async with (
        stores.wakeups.subscribe("run.events:1") as first,
        stores.wakeups.subscribe("run.events:1") as second,
        stores.wakeups.subscribe("run.events:2") as other,
    ):
        stores.wakeups.wake("run.events:1")
        assert await first.wait(SOON_S)
        assert await second.wait(SOON_S)
        assert not await other.wait(0)


async def test_a_listener_of_several_topics_is_woken_by_each(stores: Stores) -> None:
    async with stores.wakeups.subscribe("a", "b") as subscription:
        for topic in ("a", "b"):
            stores.wakeups.wake(topic)
            assert await subscription.wait(SOON_S)
        stores.wakeups.wake("c")
        assert not await subscription.wait(0)


async def test_several_topics_are_woken_together(stores: Stores) -> None:
    async with stores.wakeups.subscribe("a") as first, stores.wakeups.subscribe("b") as second:
        stores.wakeups.wake("a", "b")
        assert await first.wait(SOON_S)
        assert await second.wait(SOON_S)


async def test_a_listener_that_left_does_not_keep_others_from_being_woken(stores: Stores) -> None:
    async with stores.wakeups.subscribe("a") as staying:
        async with stores.wakeups.subscribe("a"):
            pass
        stores.wakeups.wake("a")
        assert await staying.wait(SOON_S)


async def test_a_listener_hears_nothing_from_before_it_came(stores: Stores) -> None:
    async with stores.wakeups.subscribe("a") as early:
        stores.wakeups.wake("a")
        assert await early.wait(SOON_S)
        async with stores.wakeups.subscribe("a") as late:
            assert not await late.wait(0)


async def test_a_cancelled_wait_leaves_the_subscription_usable(stores: Stores) -> None:
    async with stores.wakeups.subscribe("a") as subscription:
        waiting = asyncio.create_task(subscription.wait(SOON_S))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        stores.wakeups.wake("a")
        assert await subscription.wait(SOON_S)


async def test_waking_a_topic_that_nobody_listens_to_is_nothing(stores: Stores) -> None:
    stores.wakeups.wake("nobody")
    stores.wakeups.wake()
    async with stores.wakeups.subscribe("nobody") as subscription:
        assert not await subscription.wait(0)


def test_the_topics_of_a_run_are_apart_from_each_other_and_from_those_of_other_runs() -> None:
    topics = [topic(RunId(run)) for run in ("run_1", "run_2") for topic in (events_topic, status_topic, control_topic)]
    assert len(set(topics)) == 6
