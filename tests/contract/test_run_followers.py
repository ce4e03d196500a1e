"""What the run stores, the leases and the journal promise to those who follow a run: a wake-up
after each commit."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from application.runs.ports import LeaseLost, control_topic, events_topic, status_topic
from application.system.wakeups import Subscription
from domain.ids import RunId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import Run, RunStatus
from tests.builders import KEY, ORG, RUN, START, a_displayable_call, a_settled_call, after
from tests.contract.run_changes import cancel, resume
from tests.contract.run_steps import (
    claim,
    finish_step,
    reply_step,
    run_number,
    start,
    start_and_claim,
    start_and_suspend,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores

SOON_S = 60.0


def a_delta() -> NewEvent:
    return NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": "msg_1", "text": "…"})


class Subscriber:
    """Reads a run the moment it is woken, as a stream does."""

    def __init__(self, stores: Stores, subscription: Subscription) -> None:
        self._stores = stores
        self._subscription = subscription

    async def sees(self, write: Awaitable[object]) -> tuple[Run, tuple[str, ...]]:
        """The run and its events as read after the first wake-up, begun before the write."""
        reading = asyncio.create_task(self._read_when_woken())
        await write
        return await reading

    async def _read_when_woken(self) -> tuple[Run, tuple[str, ...]]:
        assert await self._subscription.wait(SOON_S), "nobody was woken"
        events = await self._stores.runs.events(ORG, RUN, after_seq=0, limit=1000)
        return await stored(self._stores, RUN), tuple(event.type.value for event in events)


@pytest.mark.requirement("E2", "E6")
async def test_who_is_woken_finds_what_was_written(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    async with run_stores.wakeups.subscribe(events_topic(RUN)) as subscription:
        follower = Subscriber(run_stores, subscription)
        _, events = await follower.sees(run_stores.journal.append(claimed.lease, (a_delta(),)))
        assert events[-1] == "message.delta"
        _, events = await follower.sees(run_stores.journal.commit(claimed.lease, reply_step(claimed.run)))
        assert events[-1] == "message.completed"
        run, events = await follower.sees(run_stores.journal.commit(claimed.lease, finish_step(claimed.run)))
        assert (run.status, events[-1]) == (RunStatus.COMPLETED, "run.completed")


Act = Callable[[Stores], Awaitable[object]]


async def _claims(stores: Stores) -> None:
    await stores.leases.hand_back((await start_and_claim(stores)).lease, active_s=0.0, at=after(1))


async def _suspends(stores: Stores) -> None:
    await start_and_suspend(stores)


@pytest.mark.requirement("E6")
@pytest.mark.parametrize(
    ("prepare", "act", "topics"),
    [
        (_claims, lambda stores: claim(stores, RUN), {"events"}),
        (_claims, lambda stores: cancel(stores.runs, ORG, RUN, actor=KEY, at=after(2)), {"events", "status"}),
        (_suspends, lambda stores: cancel(stores.runs, ORG, RUN, actor=KEY, at=after(2)), {"events", "status"}),
        (_suspends, lambda stores: start(stores, run_number(2)), {"events", "status"}),
        (
            _suspends,
            lambda stores: resume(
                stores.runs, ORG, RUN, (a_settled_call(a_displayable_call()),), actor=KEY, at=after(2)
            ),
            {"events"},
        ),
        (start_and_claim, lambda stores: cancel(stores.runs, ORG, RUN, actor=KEY, at=after(2)), {"control"}),
    ],
    ids=["claimed", "cancelled while queued", "cancelled while waiting", "displayed", "resumed", "asked to stop"],
)
async def test_the_store_and_the_leases_wake_followers_too(
    run_stores: Stores, prepare: Act, act: Act, topics: set[str]
) -> None:
    await prepare(run_stores)
    await assert_woken(run_stores, RUN, topics, lambda: act(run_stores))


@pytest.mark.requirement("E6")
async def test_a_step_wakes_those_who_wait_for_an_outcome_only_when_there_is_one(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    call = a_displayable_call()
    journal = run_stores.journal
    asked, suspended = reply_step(claimed.run, call), suspend_step(claimed.run, call)
    await assert_woken(run_stores, RUN, {"events"}, lambda: journal.commit(claimed.lease, asked))
    await assert_woken(run_stores, RUN, {"events", "status"}, lambda: journal.commit(claimed.lease, suspended))


@pytest.mark.requirement("E4")
async def test_a_refused_write_wakes_nobody(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.leases.hand_back(claimed.lease, active_s=0.0, at=after(1))

    async def refused() -> None:
        with pytest.raises(LeaseLost):
            await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))

    await assert_woken(run_stores, RUN, set(), refused)


async def assert_woken(stores: Stores, run_id: RunId, expected: set[str], act: Callable[[], Awaitable[object]]) -> None:
    """Exactly these of the run's topics are woken by `act`."""
    wakeups = stores.wakeups
    async with (
        wakeups.subscribe(events_topic(run_id)) as events,
        wakeups.subscribe(status_topic(run_id)) as status,
        wakeups.subscribe(control_topic(run_id)) as control,
    ):
        await act()
        by_name = {"events": events, "status": status, "control": control}
        for name in expected:
            assert await by_name[name].wait(SOON_S), f"the {name} topic was not woken"
        for name in by_name.keys() - expected:
            assert not await by_name[name].wait(0), f"the {name} topic was woken"
