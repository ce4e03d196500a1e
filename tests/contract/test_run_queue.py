"""The contract of RunQueue and its consumer: every adapter rings for each submitted run, and one
bad run harms no other."""

import asyncio
import logging
from typing import cast

import pytest

from domain.ids import RunId
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue
from infrastructure.persistence.engine.database import Database
from tests.builders import a_run_id
from tests.contract.queue_consumers import ConsumedQueue, Handler, consume, settle, stop


@pytest.fixture(params=["in-process", "procrastinate"])
def queue(request: pytest.FixtureRequest) -> ConsumedQueue:
    if request.param == "in-process":
        return InProcessRunQueue()
    url, database = cast("tuple[str, Database]", request.getfixturevalue("postgres"))
    return ProcrastinateRunQueue(url, database=database)


@pytest.mark.requirement("E1")
async def test_every_submitted_run_is_handled_whenever_the_consumer_came(queue: ConsumedQueue) -> None:
    handler = Handler()
    await queue.submit(a_run_id(1))
    await queue.submit(a_run_id(2))
    consuming = consume(queue, handler)
    await handler.until_finished(2)
    await queue.submit(a_run_id(3))
    await handler.until_finished(3)
    assert sorted(handler.finished) == [a_run_id(1), a_run_id(2), a_run_id(3)]
    await stop(consuming)


async def test_runs_are_handled_side_by_side_within_the_bound(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    for number in range(10):
        await queue.submit(a_run_id(number))
    consuming = consume(queue, handler, concurrency=3)
    await handler.until_begun(3)
    await settle()
    assert len(handler.begun) == 3
    handler.go_on.set()
    await handler.until_finished(10)
    assert handler.most_at_once == 3
    await stop(consuming)


@pytest.mark.timeout(600)  # a thousand commits, and as many turns of one handler
async def test_submitting_never_waits_for_a_handler(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    consuming = consume(queue, handler, concurrency=1)
    async with asyncio.timeout(300):
        for number in range(1_000):
            await queue.submit(a_run_id(number))
    handler.go_on.set()
    await handler.until_finished(1_000)
    assert len(set(handler.finished)) == 1_000
    await stop(consuming)


async def test_a_run_submitted_again_while_it_is_handled_is_handled_again_after_that(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    await queue.submit(a_run_id(1))
    await queue.submit(a_run_id(1))
    await settle()
    assert handler.begun == [a_run_id(1)], "one run is never handled twice at a time"
    handler.go_on.set()
    await handler.until_finished(2)
    await settle()
    assert handler.finished == [a_run_id(1), a_run_id(1)]
    await stop(consuming)


async def test_a_failing_handler_is_logged_and_stops_nothing(
    queue: ConsumedQueue, caplog: pytest.LogCaptureFixture
) -> None:
    handler = Handler()

    async def picky(run_id: RunId) -> None:
        if run_id == a_run_id(1):
            raise RuntimeError("no")
        await handler(run_id)

    with caplog.at_level(logging.ERROR):
        consuming = consume(queue, picky, concurrency=1)
        await queue.submit(a_run_id(1))
        await queue.submit(a_run_id(2))
        await handler.until_finished(1)
    assert [getattr(record, "run_id", None) for record in caplog.records] == [a_run_id(1)]
    await stop(consuming)


@pytest.mark.requirement("E7")
async def test_draining_takes_nothing_new_and_waits_for_what_is_in_hand(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    consuming = consume(queue, handler, concurrency=1)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    await queue.submit(a_run_id(2))
    draining = asyncio.create_task(queue.drain(60))
    await settle()
    assert not draining.done()
    handler.go_on.set()
    assert await draining
    await consuming
    assert handler.begun == handler.finished == [a_run_id(1)]


@pytest.mark.requirement("E7")
async def test_draining_says_so_when_the_deadline_passes_first(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    assert not await queue.drain(0)
    assert handler.cancelled == []
    handler.go_on.set()
    assert await queue.drain(60), "what was cut off nowhere may still end by itself"
    await consuming


async def test_draining_an_idle_queue_is_over_at_once(queue: ConsumedQueue) -> None:
    consuming = consume(queue, Handler())
    await settle()
    assert await queue.drain(0)
    await consuming


async def test_cancelling_the_consumer_cancels_the_handlers(queue: ConsumedQueue) -> None:
    handler = Handler(held=True)
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    await stop(consuming)
    assert handler.cancelled == [a_run_id(1)]


@pytest.mark.requirement("G2")
async def test_a_queue_is_attended_from_when_its_consumer_hears_until_it_stops(queue: ConsumedQueue) -> None:
    assert not queue.attended
    consuming = consume(queue, Handler())
    await queue.until_attended()
    await stop(consuming)
    assert not queue.attended


@pytest.mark.requirement("G2")
async def test_a_drained_queue_is_not_attended(queue: ConsumedQueue) -> None:
    consuming = consume(queue, Handler())
    await queue.until_attended()
    assert await queue.drain(30)
    await consuming
    assert not queue.attended
