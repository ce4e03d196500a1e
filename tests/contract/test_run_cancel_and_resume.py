"""The contract of `RunStore.change` with the decisions to stop and to resume a run."""

from functools import partial

import pytest

from application.audit.ports import AuditFilter
from domain.errors import ErrorKind, ServiceError
from domain.runs.closing import CANCELLED
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from domain.threads.message import Role
from domain.tools.result import ToolResult
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    WORKER,
    a_displayable_call,
    a_run_id,
    a_settled_call,
    a_tool_call,
    a_tool_use,
    after,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, messages_of, resume
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


async def events_after(stores: Stores, seq: int) -> list[str]:
    return [event.type.value for event in await stores.runs.events(ORG, RUN, after_seq=seq, limit=100)]


async def audit_of_run(stores: Stores) -> list[tuple[str, str]]:
    entries = await all_of(partial(stores.audit.page, ORG, AuditFilter(run_id=RUN)))
    return sorted((entry.action.value, entry.actor) for entry in entries)


# --- cancelling ---


@pytest.mark.requirement("A12", "C5")
async def test_a_queued_run_is_cancelled_at_once(run_stores: Stores) -> None:
    await start(run_stores)
    outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
    assert outcome is not None
    assert outcome.run == await stored(run_stores, RUN)
    assert (outcome.run.status, outcome.run.finished_at) == (RunStatus.CANCELLED, after(3))
    assert outcome.promoted is None
    assert await events_after(run_stores, 0) == ["run.queued", "run.cancelled"]
    assert await audit_of_run(run_stores) == [("run.cancelled", KEY)]
    assert await run_stores.leases.claim(RUN, WORKER, lease_s=LEASE_S, at=after(4)) is None


@pytest.mark.requirement("A12")
async def test_a_waiting_run_is_cancelled_at_once_and_its_open_calls_are_answered(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    done, failed, shown = a_tool_call(0), a_tool_call(1), a_displayable_call(2)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, done, failed, shown))
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(done)))
    error = a_settled_call(failed, ToolResult.failed("mcp_error", "no such file"))
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, error))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, shown))
    seq = (await stored(run_stores, RUN)).last_seq

    outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))

    assert outcome is not None
    assert (outcome.run.status, outcome.run.pending) == (RunStatus.CANCELLED, ())
    assert await events_after(run_stores, seq) == ["tool.failed", "message.completed", "run.cancelled"]
    messages = await messages_of(run_stores.runs, ORG, RUN)
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [(result.result, result.is_error) for result in messages[-1].tool_results] == [
        ("done", False),
        ("no such file", True),
        (CANCELLED, True),
    ]
    assert {call.state for call in await run_stores.runs.tool_calls(ORG, RUN)} == {ToolCallState.SETTLED}


@pytest.mark.requirement("A12", "E4")
async def test_a_run_in_progress_is_asked_to_stop_and_written_by_its_worker_only(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    before = await stored(run_stores, RUN)
    assert not await run_stores.journal.cancel_requested_by(claimed.lease)

    for _ in range(2):
        outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
        assert outcome is not None
        assert (outcome.run.status, outcome.run.cancel_requested_by) == (
            RunStatus.IN_PROGRESS,
            outcome.run.cancel_requested_by,
        )
        assert outcome.promoted is None

    assert await run_stores.journal.cancel_requested_by(claimed.lease) == KEY
    assert await events_after(run_stores, before.last_seq) == []
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run))
    assert await run_stores.journal.cancel_requested_by(claimed.lease), "a step does not take the request back"


@pytest.mark.requirement("A12")
@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.FAILED])
async def test_an_ended_run_does_not_change(run_stores: Stores, status: RunStatus) -> None:
    claimed = await start_and_claim(run_stores)
    await run_stores.journal.commit(claimed.lease, finish_step(claimed.run, status))
    before = await stored(run_stores, RUN)
    outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
    assert outcome is not None
    assert outcome.run == before == await stored(run_stores, RUN)
    assert outcome.promoted is None
    assert await events_after(run_stores, before.last_seq) == []


async def test_cancelling_an_unknown_run_is_none(run_stores: Stores) -> None:
    assert await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3)) is None


@pytest.mark.requirement("E5")
async def test_cancelling_a_waiting_run_makes_room_for_the_next(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    for number in (3, 2):
        await start(run_stores, run_number(number))
    call = a_tool_call(state=ToolCallState.AWAITING_CLIENT)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))

    outcome = await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(9))

    assert outcome is not None
    assert outcome.promoted == a_run_id(2)
    await claim(run_stores, a_run_id(2))


@pytest.mark.requirement("E5")
async def test_cancelling_a_queued_run_does_not_make_room_on_a_busy_thread(run_stores: Stores) -> None:
    await start_and_claim(run_stores, run_number(1))
    for number in (2, 3):
        await start(run_stores, run_number(number))
    outcome = await cancel(run_stores.runs, ORG, a_run_id(2), actor=KEY, at=after(9))
    assert outcome is not None
    assert outcome.promoted is None


@pytest.mark.requirement("A12")
async def test_a_run_asked_to_stop_that_begins_to_wait_is_cancelled_instead(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2))
    call = a_displayable_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))

    outcome = await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call, at=after(5)))

    run = await stored(run_stores, RUN)
    assert (run.status, run.pending, run.finished_at) == (RunStatus.CANCELLED, (), after(5))
    assert (outcome.last_seq, outcome.promoted) == (run.last_seq, a_run_id(2))
    assert (await messages_of(run_stores.runs, ORG, RUN))[-1].tool_results[0].result == CANCELLED
    assert (await events_after(run_stores, 0))[-1] == "run.cancelled"


# --- resuming ---


@pytest.mark.requirement("D5", "C5")
async def test_a_run_whose_calls_are_all_settled_is_queued_and_goes_on_with_their_results(run_stores: Stores) -> None:
    waiting, (first, second) = await start_and_suspend(run_stores, run_number(1), count=2)
    settled = (
        a_settled_call(second, ToolResult.failed("client_error", "the address bounced"), at=after(9)),
        a_settled_call(first, ToolResult.succeeded("sent"), duration_ms=0, at=after(9)),
    )

    run = await resume(run_stores.runs, ORG, RUN, settled, actor=KEY, at=after(9))

    assert run == await stored(run_stores, RUN)
    assert (run.status, run.pending) == (RunStatus.QUEUED, ())
    events = await run_stores.runs.events(ORG, RUN, after_seq=waiting.last_seq, limit=10)
    assert [(event.type.value, event.data.get("tool_call_id")) for event in events] == [
        ("tool.failed", second.id),
        ("tool.executed", first.id),
        ("run.resumed", None),
    ]
    assert await audit_of_run(run_stores) == [
        ("run.started", "system"),
        ("tool.executed", KEY),
        ("tool.failed", KEY),
    ]
    claimed = await claim(run_stores, RUN, at=after(10))
    assert [(call.id, call.state, call.result) for call in claimed.open_calls] == [
        (first.id, ToolCallState.SETTLED, ToolResult.succeeded("sent")),
        (second.id, ToolCallState.SETTLED, ToolResult.failed("client_error", "the address bounced")),
    ]


@pytest.mark.requirement("D5")
async def test_a_run_whose_calls_are_settled_in_part_goes_on_waiting_for_the_rest(run_stores: Stores) -> None:
    waiting, (first, second) = await start_and_suspend(run_stores, run_number(1), count=2)

    run = await resume(run_stores.runs, ORG, RUN, (a_settled_call(first),), actor=KEY, at=after(9))

    assert (run.status, run.pending) == (RunStatus.REQUIRES_ACTION, (a_tool_use(second),))
    assert run == await stored(run_stores, RUN)
    assert await events_after(run_stores, waiting.last_seq) == ["tool.executed"]
    assert await run_stores.leases.claim(RUN, WORKER, lease_s=LEASE_S, at=after(10)) is None
    resumed = await resume(run_stores.runs, ORG, RUN, (a_settled_call(second),), actor=KEY, at=after(11))
    assert resumed.status is RunStatus.QUEUED


@pytest.mark.requirement("D5")
async def test_a_call_that_is_not_pending_is_refused_and_then_nothing_is_settled(run_stores: Stores) -> None:
    waiting, (first, _) = await start_and_suspend(run_stores, run_number(1), count=2)
    settled = (a_settled_call(first), a_settled_call(a_displayable_call(7)))
    with pytest.raises(ServiceError) as refused:
        await resume(run_stores.runs, ORG, RUN, settled, actor=KEY, at=after(9))
    assert (refused.value.code, refused.value.kind) == ("tool_call_not_pending", ErrorKind.INVALID)
    assert [violation.path for violation in refused.value.violations] == ["tool_results.1.tool_call_id"]
    assert await stored(run_stores, RUN) == waiting
    states = {call.state for call in await run_stores.runs.tool_calls(ORG, RUN)}
    assert states == {ToolCallState.AWAITING_CLIENT}


@pytest.mark.requirement("D5")
async def test_a_call_settled_before_is_not_pending_any_more(run_stores: Stores) -> None:
    _, (first, _) = await start_and_suspend(run_stores, run_number(1), count=2)
    await resume(run_stores.runs, ORG, RUN, (a_settled_call(first),), actor=KEY, at=after(9))
    with pytest.raises(ServiceError) as refused:
        await resume(run_stores.runs, ORG, RUN, (a_settled_call(first),), actor=KEY, at=after(10))
    assert refused.value.code == "tool_call_not_pending"


@pytest.mark.parametrize("state", ["queued", "in_progress", "resumed", "ended"])
async def test_a_run_that_does_not_wait_cannot_be_resumed(run_stores: Stores, state: str) -> None:
    call = a_displayable_call()
    match state:
        case "queued":
            await start(run_stores)
        case "in_progress":
            await start_and_claim(run_stores)
        case "resumed":
            _, (call,) = await start_and_suspend(run_stores)
            await resume(run_stores.runs, ORG, RUN, (a_settled_call(call),), actor=KEY, at=after(1))
        case _:
            claimed = await start_and_claim(run_stores)
            await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    before = await stored(run_stores, RUN)
    with pytest.raises(ServiceError) as refused:
        await resume(run_stores.runs, ORG, RUN, (a_settled_call(call),), actor=KEY, at=after(2))
    assert (refused.value.code, refused.value.kind) == ("run_not_waiting", ErrorKind.CONFLICT)
    assert await stored(run_stores, RUN) == before


@pytest.mark.requirement("C6")
async def test_resuming_an_unknown_run_or_one_of_another_organization_is_not_found(run_stores: Stores) -> None:
    _, (call,) = await start_and_suspend(run_stores)
    for organization_id, run_id in ((OTHER_ORG, RUN), (ORG, a_run_id(2))):
        with pytest.raises(ServiceError) as refused:
            await resume(run_stores.runs, organization_id, run_id, (a_settled_call(call),), actor=KEY, at=after(1))
        assert (refused.value.code, refused.value.kind) == ("run_not_found", ErrorKind.NOT_FOUND)


@pytest.mark.requirement("E5")
async def test_a_resumed_run_goes_before_runs_that_were_queued_behind_it(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(2))
    await start(run_stores, run_number(1))
    call = a_tool_call(run_id=a_run_id(2), state=ToolCallState.AWAITING_CLIENT)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))
    await resume(run_stores.runs, ORG, a_run_id(2), (a_settled_call(call),), actor=KEY, at=after(9))

    assert await run_stores.leases.claim(a_run_id(1), WORKER, lease_s=LEASE_S, at=after(10)) is None
    resumed = await claim(run_stores, a_run_id(2), at=after(10))
    await run_stores.journal.commit(resumed.lease, answer_step(resumed.run, *resumed.open_calls))
    assert resumed.open_calls[0].id == call.id
    outcome = await run_stores.journal.commit(resumed.lease, finish_step(resumed.run))
    assert outcome.promoted == a_run_id(1)
