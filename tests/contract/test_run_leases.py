"""The contract of `RunLeases`: who executes a run."""

from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.ports import EndedAtClaim, LeaseLost
from domain.audit.event import AuditAction
from domain.runs.closing import CANCELLED
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from domain.runs.step import Step
from domain.threads.message import Role
from domain.tools.result import ToolResult
from tests.builders import (
    AGENT,
    KEY,
    ORG,
    OTHER_WORKER,
    RUN,
    THREAD,
    WORKER,
    a_message,
    a_run,
    a_run_id,
    a_settled_call,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
    an_agent,
    an_audit_event,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, messages_of
from tests.contract.run_steps import (
    LEASE_S,
    answer_step,
    claim,
    finish_step,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    start_and_suspend,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores


async def recoverable(stores: Stores, at_s: float, limit: int = 100) -> list[str]:
    return list(await stores.leases.recoverable(at=after(at_s), limit=limit))


async def tries_to_claim(stores: Stores, number: int = 1) -> bool:
    claimed = await stores.leases.claim(a_run_id(number), OTHER_WORKER, lease_s=LEASE_S, at=after(10))
    return claimed is not None


# --- claiming ---


@pytest.mark.requirement("A2", "E4")
async def test_claiming_a_new_run_gives_everything_to_begin_with(run_stores: Stores) -> None:
    await run_stores.threads.append(ORG, a_message(text="before"))
    queued = (await start(run_stores, a_run(requested_by=KEY))).run

    claimed = await claim(run_stores, RUN, at=after(5))

    assert (claimed.lease.run_id, claimed.lease.organization_id, claimed.lease.thread_id) == (RUN, ORG, THREAD)
    assert claimed.lease.epoch == claimed.run.epoch == queued.epoch + 1
    assert claimed.run == await stored(run_stores, RUN)
    assert (claimed.run.status, claimed.run.attempt, claimed.run.started_at) == (RunStatus.IN_PROGRESS, 1, after(5))
    assert claimed.agent == an_agent()
    assert [(message.role, message.text) for message in claimed.transcript] == [
        (Role.USER, "before"),
        (Role.USER, "What time is it?"),
    ]
    assert claimed.open_calls == ()


@pytest.mark.requirement("A2", "E2", "C5")
async def test_claiming_writes_the_input_message_the_events_and_the_audit_entry_with_the_lease(
    run_stores: Stores,
) -> None:
    await start(run_stores, a_run(requested_by=KEY))
    claimed = await claim(run_stores, RUN, at=after(5))

    (message,) = await all_of(partial(run_stores.threads.messages, ORG, THREAD))
    assert message == claimed.transcript[-1]
    assert (message.run_id, message.content, message.created_at) == (RUN, a_run().input, after(5))
    events = await run_stores.runs.events(ORG, RUN, after_seq=1, limit=10)
    assert [(event.seq, event.type.value) for event in events] == [
        (2, "run.started"),
        (3, "message.completed"),
        (4, "turn.started"),
    ]
    assert (events[0].data, events[2].data) == ({"attempt": 1, "agent_version": 1}, {"turn": 1})
    assert claimed.run.last_seq == 4
    (entry,) = await all_of(partial(run_stores.audit.page, ORG, AuditFilter(run_id=RUN)))
    assert (entry.action, entry.actor) == (AuditAction.RUN_STARTED, KEY)


@pytest.mark.requirement("E4")
async def test_a_run_is_claimed_once(run_stores: Stores) -> None:
    await start_and_claim(run_stores)
    before = await stored(run_stores, RUN)
    assert not await tries_to_claim(run_stores)
    assert await stored(run_stores, RUN) == before


async def test_there_is_nothing_to_claim_of_unknown_waiting_and_ended_runs(run_stores: Stores) -> None:
    assert not await tries_to_claim(run_stores)
    await start_and_suspend(run_stores)
    assert not await tries_to_claim(run_stores)
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(1))
    assert not await tries_to_claim(run_stores)


@pytest.mark.requirement("E5")
async def test_one_run_of_a_thread_is_active_and_the_queued_ones_follow_in_order(run_stores: Stores) -> None:
    for number in (1, 3, 2):
        await start(run_stores, run_number(number))
    assert [await tries_to_claim(run_stores, number) for number in (3, 2)] == [False, False]
    for number, following in ((1, a_run_id(2)), (2, a_run_id(3)), (3, None)):
        claimed = await claim(run_stores, a_run_id(number))
        assert [await tries_to_claim(run_stores, other) for other in (1, 2, 3)] == [False, False, False]
        outcome = await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
        assert outcome.promoted == following


async def test_runs_of_different_threads_do_not_wait_for_each_other(run_stores: Stores) -> None:
    await run_stores.threads.add(a_thread(a_thread_id(2)))
    await start_and_claim(run_stores, run_number(1))
    await start_and_claim(run_stores, run_number(2, thread_id=a_thread_id(2)))


@pytest.mark.requirement("A12")
async def test_a_queued_run_that_was_asked_to_stop_is_cancelled_at_the_claim(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    call = a_tool_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await start(run_stores, run_number(2))
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(2))
    await run_stores.leases.hand_back(claimed.lease, active_s=1.0, at=after(3))

    ended = await run_stores.leases.claim(RUN, OTHER_WORKER, lease_s=LEASE_S, at=after(4))

    run = await stored(run_stores, RUN)
    assert ended == EndedAtClaim(run=run, promoted=a_run_id(2))
    assert (run.status, run.finished_at) == (RunStatus.CANCELLED, after(4))
    assert (await messages_of(run_stores.runs, ORG, RUN))[-1].tool_results[0].result == CANCELLED
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert [event.type.value for event in events][-3:] == ["tool.failed", "message.completed", "run.cancelled"]


@pytest.mark.requirement("C1")
async def test_a_claim_reads_the_agent_at_its_newest_version(run_stores: Stores) -> None:
    await start(run_stores)
    newest = an_agent(version=2, instructions="New.")
    await run_stores.agents.save(newest, expected_version=1, audit=an_audit_event(9))
    claimed = await claim(run_stores, RUN)
    assert claimed.agent == newest
    assert claimed.run.agent_version == (await stored(run_stores, RUN)).agent_version == 2


async def test_an_agent_deleted_by_a_race_counts_at_its_last_version(run_stores: Stores) -> None:
    await run_stores.agents.save(an_agent(version=2), expected_version=1, audit=an_audit_event(8))
    await run_stores.agents.delete(ORG, AGENT, an_audit_event(9))
    await start(run_stores)
    assert (await claim(run_stores, RUN)).agent == an_agent(version=2)


@pytest.mark.requirement("E3", "E4")
async def test_a_second_attempt_finds_what_the_first_left(run_stores: Stores) -> None:
    first = await start_and_claim(run_stores)
    done, lost = a_tool_call(0), a_tool_call(1)
    await run_stores.journal.commit(first.lease, reply_step(first.run, done, lost))
    await run_stores.journal.commit(
        first.lease, settle_step(first.run, a_settled_call(done, ToolResult.succeeded("4")))
    )
    await run_stores.leases.hand_back(first.lease, active_s=2.5, at=after(5))

    second = await claim(run_stores, RUN, worker_id=OTHER_WORKER, at=after(6))

    assert second.lease.epoch > first.lease.epoch
    assert (second.run.attempt, second.run.active_s, second.run.started_at) == (2, 2.5, first.run.started_at)
    assert [(call.id, call.state, call.result) for call in second.open_calls] == [
        (done.id, ToolCallState.SETTLED, ToolResult.succeeded("4")),
        (lost.id, ToolCallState.RECORDED, None),
    ]
    assert [message.role for message in second.transcript] == [Role.USER, Role.ASSISTANT]
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert [event.type.value for event in events].count("message.completed") == 2
    assert (events[-1].type.value, events[-1].data["attempt"]) == ("run.started", 2)
    started = await all_of(partial(run_stores.audit.page, ORG, AuditFilter(action="run.started")))
    assert len(started) == 1


@pytest.mark.requirement("E3")
async def test_calls_that_a_message_answers_are_not_open_any_more(run_stores: Stores) -> None:
    first = await start_and_claim(run_stores)
    answered, open_call = a_tool_call(turn=1), a_tool_call(turn=2)
    settled = a_tool_call(turn=1, result=ToolResult.succeeded("done"))
    await run_stores.journal.commit(first.lease, reply_step(first.run, answered))
    await run_stores.journal.commit(first.lease, settle_step(first.run, a_settled_call(answered)))
    await run_stores.journal.commit(first.lease, answer_step(first.run, settled))
    await run_stores.journal.commit(first.lease, reply_step(first.run, open_call))
    await run_stores.leases.hand_back(first.lease, active_s=0.0, at=after(5))
    second = await claim(run_stores, RUN)
    assert [call.id for call in second.open_calls] == [open_call.id]
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert events[-1].type.value == "run.started", "with open calls the turn begins after their results"


# --- renewing, handing back, recovering ---


@pytest.mark.requirement("E4")
async def test_a_renewed_lease_does_not_lapse(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, a_run())
    assert await run_stores.leases.renew(WORKER, (claimed.lease,), lease_s=LEASE_S, at=after(10)) == frozenset()
    assert await recoverable(run_stores, 10 + LEASE_S - 1) == []
    assert await recoverable(run_stores, 10 + LEASE_S) == [RUN]


@pytest.mark.requirement("E4")
async def test_renewing_tells_which_leases_are_lost(run_stores: Stores) -> None:
    leases = []
    for number in (1, 2, 3, 4):
        thread = a_thread(a_thread_id(10 + number))
        await run_stores.threads.add(thread)
        claimed = await start_and_claim(run_stores, run_number(number, thread_id=thread.id))
        leases.append(claimed.lease)
        if number == 3:
            await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    await run_stores.leases.hand_back(leases[1], active_s=0.0, at=after(5))
    await claim(run_stores, a_run_id(2), worker_id=OTHER_WORKER, at=after(10))
    lost = await run_stores.leases.renew(WORKER, tuple(leases), lease_s=LEASE_S, at=after(10))
    assert lost == {a_run_id(2), a_run_id(3)}
    assert await recoverable(run_stores, 10 + LEASE_S - 1) == []


async def test_renewing_nothing_loses_nothing(run_stores: Stores) -> None:
    assert await run_stores.leases.renew(WORKER, (), lease_s=LEASE_S, at=after(1)) == frozenset()


@pytest.mark.requirement("E7")
async def test_a_run_handed_back_is_queued_and_its_former_worker_fenced(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    assert await run_stores.leases.hand_back(claimed.lease, active_s=12.5, at=after(5))
    run = await stored(run_stores, RUN)
    assert (run.status, run.active_s) == (RunStatus.QUEUED, 12.5)
    assert not await run_stores.leases.hand_back(claimed.lease, active_s=99.0, at=after(6))
    with pytest.raises(LeaseLost):
        await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await stored(run_stores, RUN) == run


@pytest.mark.requirement("E4")
async def test_a_lapsed_run_is_put_back_and_its_revived_worker_can_write_nothing(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, a_run())
    assert await recoverable(run_stores, LEASE_S - 1) == []

    assert await recoverable(run_stores, LEASE_S) == [RUN]

    run = await stored(run_stores, RUN)
    assert run.status is RunStatus.QUEUED
    assert run.epoch > claimed.lease.epoch
    for step in (reply_step(claimed.run), finish_step(claimed.run), Step(run=claimed.run)):
        with pytest.raises(LeaseLost):
            await run_stores.journal.commit(claimed.lease, step)
    assert not await run_stores.leases.hand_back(claimed.lease, active_s=1.0, at=after(50))
    assert await run_stores.leases.renew(WORKER, (claimed.lease,), lease_s=LEASE_S, at=after(50)) == {RUN}
    assert await stored(run_stores, RUN) == run
    second = await claim(run_stores, RUN, worker_id=OTHER_WORKER, at=after(51))
    assert second.run.attempt == 2


@pytest.mark.requirement("E4")
async def test_a_paused_worker_whose_run_nobody_took_may_go_on(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, a_run())
    assert await run_stores.leases.renew(WORKER, (claimed.lease,), lease_s=LEASE_S, at=after(100)) == frozenset()
    assert await recoverable(run_stores, 101) == []
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))


@pytest.mark.requirement("E4", "E7")
async def test_what_can_be_recovered_is_what_can_be_claimed_lapsed_runs_first(run_stores: Stores) -> None:
    """Thread 1: a waiting run before a queued one. Thread 2: two queued. Thread 3: lapsed, one
    behind. Thread 4: ended."""
    threads = [a_thread(a_thread_id(10 + number)) for number in (1, 2, 3, 4)]
    for thread in threads:
        await run_stores.threads.add(thread)
    waiting = run_number(1, thread_id=threads[0].id)
    claimed = await start_and_claim(run_stores, waiting)
    await start(run_stores, run_number(2, thread_id=threads[0].id))
    call = a_tool_call(run_id=waiting.id, state=ToolCallState.AWAITING_CLIENT)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))
    for number in (3, 4):
        await start(run_stores, run_number(number, thread_id=threads[1].id))
    await start_and_claim(run_stores, run_number(5, thread_id=threads[2].id))
    await start(run_stores, run_number(6, thread_id=threads[2].id))
    ended = await start_and_claim(run_stores, run_number(7, thread_id=threads[3].id))
    await run_stores.journal.commit(ended.lease, finish_step(ended.run))

    assert await recoverable(run_stores, 6) == [a_run_id(3)]
    assert await recoverable(run_stores, 60, limit=1) == [a_run_id(5)]
    assert await recoverable(run_stores, 60) == [a_run_id(3), a_run_id(5)]
    for number in (3, 5):
        await claim(run_stores, a_run_id(number), at=after(60))
    assert await recoverable(run_stores, 61) == []


@pytest.mark.requirement("E7")
async def test_recovering_stays_within_its_limit_and_leaves_the_rest_for_the_next_time(run_stores: Stores) -> None:
    for number in (1, 2, 3):
        await run_stores.threads.add(a_thread(a_thread_id(10 + number)))
        await start_and_claim(run_stores, run_number(number, thread_id=a_thread_id(10 + number)))
    assert await recoverable(run_stores, 60, limit=2) == [a_run_id(1), a_run_id(2)]
    statuses = [(await stored(run_stores, a_run_id(number))).status.value for number in (1, 2, 3)]
    assert statuses == ["queued", "queued", "in_progress"]
    assert set(await recoverable(run_stores, 60)) == {a_run_id(1), a_run_id(2), a_run_id(3)}


@pytest.mark.requirement("E2", "E4")
@pytest.mark.parametrize("completed", [False, True], ids=["unfinished", "completed"])
async def test_a_message_that_a_lost_worker_left_unfinished_is_taken_back_when_the_run_is_taken_up(
    run_stores: Stores, completed: bool
) -> None:
    claimed = await start_and_claim(run_stores)
    delta = NewEvent(type=RunEventType.MESSAGE_DELTA, at=after(1), data={"message_id": "msg_half", "text": "Once upon"})
    await run_stores.journal.append(claimed.lease, (delta,))
    if completed:
        await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, a_tool_call()))
    await recoverable(run_stores, LEASE_S)

    before = await stored(run_stores, RUN)
    await claim(run_stores, RUN, at=after(LEASE_S + 1))

    events = await run_stores.runs.events(ORG, RUN, after_seq=before.last_seq, limit=100)
    discarded = [event.data for event in events if event.type is RunEventType.MESSAGE_DISCARDED]
    assert discarded == ([] if completed else [{"message_id": "msg_half", "reason": "worker_lost"}])


@pytest.mark.requirement("E4", "E7")
async def test_for_the_sole_owner_of_the_database_every_lease_has_expired(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    assert await run_stores.leases.recoverable(at=after(1), limit=10, sole_owner=True) == (RUN,)
    assert await run_stores.leases.renew(WORKER, (claimed.lease,), lease_s=LEASE_S, at=after(2)) == {RUN}
