"""The contract of `BacklogReader`."""

from dataclasses import replace

import pytest

from application.metrics.ports import Backlog
from domain.ids import RunId, ThreadId
from domain.runs.run import RunStatus
from tests.builders import a_thread, a_thread_id
from tests.contract.run_steps import claim, finish_step, reply_step, run_number, start
from tests.contract.stores import Stores


async def on_its_own_thread(stores: Stores, number: int) -> RunId:
    thread_id = ThreadId(a_thread_id(200 + number))
    await stores.threads.add(a_thread(thread_id))
    run = replace(run_number(number), thread_id=thread_id)
    await start(stores, run)
    return run.id


@pytest.mark.requirement("G2")
async def test_nothing_stored_is_no_backlog(run_stores: Stores) -> None:
    assert await run_stores.backlog.read() == Backlog(runs={}, workflow_runs={})


@pytest.mark.requirement("G2")
async def test_runs_are_counted_until_they_end_and_the_oldest_that_nobody_began_is_told(run_stores: Stores) -> None:
    first, second, third = [await on_its_own_thread(run_stores, number) for number in (1, 2, 3)]
    backlog = await run_stores.backlog.read()
    assert backlog.runs == {RunStatus.QUEUED: 3}
    assert backlog.oldest_queued_at == run_number(1).created_at

    await claim(run_stores, first)
    ended = await claim(run_stores, second)
    reply = reply_step(ended.run, text="Done.")
    await run_stores.journal.commit(ended.lease, reply)
    await run_stores.journal.commit(ended.lease, finish_step(reply.run))
    backlog = await run_stores.backlog.read()
    assert backlog.runs == {RunStatus.QUEUED: 1, RunStatus.IN_PROGRESS: 1}
    assert backlog.oldest_queued_at == run_number(3).created_at, third
