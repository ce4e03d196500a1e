"""What the in-process queue promises beyond the contract: order, no duplicates, nothing
accumulates."""

import asyncio
from collections.abc import Mapping

import pytest

from domain.ids import RunId
from domain.runs.lane import Flow
from infrastructure.jobs.embedded import InProcessRunQueue
from tests.builders import AGENT, ORG, a_run_id


async def consumed(queue: InProcessRunQueue) -> list[RunId]:
    """What a consumer with one place is given until nothing waits any more."""
    handled: list[RunId] = []
    empty = asyncio.Event()

    async def handle(run_id: RunId) -> None:
        handled.append(run_id)
        if queue.waiting == 0:
            empty.set()

    consuming = asyncio.create_task(queue.consume(handle, concurrency=1))
    await empty.wait()
    assert await queue.drain(60)
    await consuming
    return handled


async def test_runs_are_handled_in_the_order_they_were_submitted() -> None:
    queue = InProcessRunQueue()
    for number in (3, 1, 2):
        await queue.submit(a_run_id(number))
    assert await consumed(queue) == [a_run_id(3), a_run_id(1), a_run_id(2)]


async def test_a_run_submitted_twice_while_it_waits_is_queued_once() -> None:
    queue = InProcessRunQueue()
    for number in (1, 2, 1, 1):
        await queue.submit(a_run_id(number))
    assert queue.waiting == 2
    assert await consumed(queue) == [a_run_id(1), a_run_id(2)]


async def test_a_drained_queue_holds_nothing_and_a_later_submission_is_kept() -> None:
    queue = InProcessRunQueue()
    await queue.submit(a_run_id(1))
    await consumed(queue)
    assert (queue.waiting, queue.in_hand) == (0, 0)
    await queue.submit(a_run_id(2))
    assert queue.waiting == 1


async def test_a_run_that_ended_while_it_waited_is_not_handled() -> None:
    flows_read, go_on = asyncio.Event(), asyncio.Event()

    async def flows(runs: Mapping[RunId, Flow | None]) -> Mapping[RunId, Flow]:
        flows_read.set()
        await go_on.wait()
        return {}

    queue = InProcessRunQueue(flows)
    await queue.submit(*(a_run_id(number) for number in (1, 2, 3)))
    queue.discard(a_run_id(1))
    consuming = asyncio.create_task(consumed(queue))
    await flows_read.wait()
    queue.discard(a_run_id(3))
    go_on.set()
    assert await consuming == [a_run_id(2)]


@pytest.mark.requirement("K1")
async def test_a_run_that_is_signalled_with_its_line_is_placed_by_it() -> None:
    asked: dict[RunId, Flow | None] = {}

    async def flows(runs: Mapping[RunId, Flow | None]) -> Mapping[RunId, Flow]:
        asked.update(runs)
        return {}

    queue = InProcessRunQueue(flows)
    line = Flow(organization_id=ORG, agent_id=AGENT)
    queue.signal(a_run_id(1), line)
    await queue.submit(a_run_id(2))
    assert await consumed(queue) == [a_run_id(1), a_run_id(2)]
    assert asked == {a_run_id(1): line, a_run_id(2): None}


@pytest.mark.requirement("K2")
async def test_a_run_that_is_executed_for_its_caller_keeps_runs_waiting_that_would_find_no_place() -> None:
    caller, called = a_run_id(1), a_run_id(2)
    waiting = [a_run_id(number) for number in range(3, 10)]

    async def flows(runs: Mapping[RunId, Flow | None]) -> Mapping[RunId, Flow]:
        return {run_id: Flow(organization_id=ORG, agent_id=AGENT, max_running=2) for run_id in runs}

    queue = InProcessRunQueue(flows)
    handled: list[RunId] = []
    beside_called: list[RunId] = []
    all_handled = asyncio.Event()

    async def handle(run_id: RunId) -> None:
        handled.append(run_id)
        if run_id == caller:
            async with queue.beside(called):
                await queue.submit(*waiting)
                for _ in range(20):
                    await asyncio.sleep(0)
                beside_called.extend(handled)
        if len(handled) == 1 + len(waiting):
            all_handled.set()

    await queue.submit(caller)
    consuming = asyncio.create_task(queue.consume(handle, concurrency=8))
    await all_handled.wait()
    assert beside_called == [caller]
    assert handled == [caller, *waiting]
    assert await queue.drain(60)
    await consuming


async def test_a_second_consumer_is_refused() -> None:
    queue = InProcessRunQueue()
    handled: list[RunId] = []

    async def handle(run_id: RunId) -> None:
        handled.append(run_id)

    consuming = asyncio.create_task(queue.consume(handle, concurrency=1))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError):
        await queue.consume(handle, concurrency=1)
    assert await queue.drain(60)
    await consuming


async def test_a_queue_without_places_is_refused() -> None:
    with pytest.raises(ValueError, match="concurrency"):
        await InProcessRunQueue().consume(lambda _: asyncio.sleep(0), concurrency=0)
