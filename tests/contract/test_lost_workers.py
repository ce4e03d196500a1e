"""The contract of `RunLeases` for runs that their workers are lost with, again and again."""

import pytest

from application.audit.ports import AuditFilter
from application.runs.ports import EndedAtClaim
from application.system.pages import PageRequest
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.run import MAX_LEASE_EXPIRATIONS, RunStatus
from domain.runs.step import Step
from tests.builders import ORG, RUN, WORKER, a_run_id, a_settled_call, a_tool_call, after
from tests.contract.run_changes import messages_of
from tests.contract.run_steps import (
    LEASE_S,
    claim,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    stored,
)
from tests.contract.stores import Stores


async def recoverable(stores: Stores, at_s: float) -> list[str]:
    return list(await stores.leases.recoverable(at=after(at_s), limit=100))


async def lose_workers(stores: Stores, count: int) -> None:
    """Workers take run 1 up one after the other, and vanish."""
    now = 100.0
    for _ in range(count):
        await claim(stores, RUN, at=after(now))
        now += LEASE_S
        assert await recoverable(stores, now) == [RUN]


@pytest.mark.requirement("E4", "E7")
async def test_a_run_that_every_worker_is_lost_with_fails_with_its_calls_answered(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    calls = a_tool_call(0), a_tool_call(1, state=ToolCallState.INPUT_GIVEN), a_tool_call(2)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, *calls))
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(calls[2])))
    await start(run_stores, run_number(2))
    assert await recoverable(run_stores, 99) == [RUN]
    await lose_workers(run_stores, MAX_LEASE_EXPIRATIONS - 1)
    before = await stored(run_stores, RUN)
    assert (before.lapses, before.attempt) == (MAX_LEASE_EXPIRATIONS, MAX_LEASE_EXPIRATIONS)

    ended = await run_stores.leases.claim(RUN, WORKER, lease_s=LEASE_S, at=after(1000))

    run = await stored(run_stores, RUN)
    assert ended == EndedAtClaim(run=run, promoted=a_run_id(2))
    assert run.error is not None
    assert (run.status, run.error.code, run.finished_at) == (RunStatus.FAILED, "too_many_attempts", after(1000))
    codes = [call.result.error_code for call in await run_stores.runs.tool_calls(ORG, RUN) if call.result]
    assert codes == ["outcome_unknown", "run_failed", None]
    answer = (await messages_of(run_stores.runs, ORG, RUN))[-1]
    assert [result.tool_id for result in answer.tool_results] == [call.id for call in calls]
    events = await run_stores.runs.events(ORG, RUN, after_seq=before.last_seq, limit=100)
    assert [event.type.value for event in events] == ["tool.failed", "tool.failed", "message.completed", "run.failed"]
    assert events[-1].data["error"] == {"code": run.error.code, "detail": run.error.detail}
    (entry,) = (await run_stores.audit.page(ORG, AuditFilter(action="run.failed"), PageRequest())).items
    assert (entry.actor, entry.resource, entry.details["error"]) == ("system", RUN, "too_many_attempts")


@pytest.mark.requirement("E2", "E4")
async def test_a_run_that_is_given_up_takes_back_the_message_that_its_last_worker_left_unfinished(
    run_stores: Stores,
) -> None:
    await start(run_stores)
    await lose_workers(run_stores, MAX_LEASE_EXPIRATIONS - 1)
    claimed = await claim(run_stores, RUN, at=after(500))
    delta = NewEvent(type=RunEventType.MESSAGE_DELTA, at=after(501), data={"message_id": "msg_half", "text": "Once"})
    await run_stores.journal.append(claimed.lease, (delta,))
    assert await recoverable(run_stores, 600) == [RUN]

    ended = await run_stores.leases.claim(RUN, WORKER, lease_s=LEASE_S, at=after(601))

    assert isinstance(ended, EndedAtClaim)
    events = await run_stores.runs.events(ORG, RUN, after_seq=ended.run.last_seq - 2, limit=100)
    assert [event.type.value for event in events] == ["message.discarded", "run.failed"]


@pytest.mark.requirement("E4", "E7")
async def test_a_stored_step_shows_that_a_run_gets_on_and_forgets_the_workers_lost_before(run_stores: Stores) -> None:
    await start(run_stores)
    await lose_workers(run_stores, MAX_LEASE_EXPIRATIONS - 1)
    claimed = await claim(run_stores, RUN, at=after(500))
    assert claimed.run.lapses == MAX_LEASE_EXPIRATIONS - 1
    await run_stores.journal.commit(claimed.lease, Step(run=claimed.run))
    assert (await stored(run_stores, RUN)).lapses == 0
    assert await recoverable(run_stores, 600) == [RUN]
    again = await claim(run_stores, RUN, at=after(601))
    assert again.run.lapses == 1


@pytest.mark.requirement("E4", "E7")
async def test_being_handed_back_neither_counts_as_a_lost_worker_nor_forgets_one(run_stores: Stores) -> None:
    await start(run_stores)
    await lose_workers(run_stores, 2)
    for number in range(MAX_LEASE_EXPIRATIONS):
        claimed = await claim(run_stores, RUN, at=after(500 + number))
        assert await run_stores.leases.hand_back(claimed.lease, active_s=0.0, at=after(500 + number))
    assert (await stored(run_stores, RUN)).lapses == 2
