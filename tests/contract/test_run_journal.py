"""The contract of `RunJournal`: one step is stored whole or not at all, and only by the lease's
holder."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.ports import LeaseLost, RunJournal
from domain.runs.closing import tool_message
from domain.runs.events import NewEvent, RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import IncompleteReason
from domain.runs.provider_error import ProviderError
from domain.runs.run import RunError, RunStatus
from domain.runs.step import Step
from domain.runs.usage import Usage
from domain.threads.message import FileContent, ImageContent
from domain.tools.capabilities import ToolType
from domain.tools.result import ToolOutcome, ToolResult
from tests.builders import (
    KEY,
    ORG,
    RUN,
    SERVER,
    START,
    THREAD,
    a_deletion,
    a_displayable_call,
    a_run_id,
    a_settled_call,
    a_tool_call,
    a_tool_use,
    after,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import messages_of, resume
from tests.contract.run_steps import (
    answer_step,
    claim,
    finish_step,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores
from tests.run_builders import some_usage


def a_delta(text: str = "…") -> NewEvent:
    return NewEvent(type=RunEventType.MESSAGE_DELTA, at=START, data={"message_id": "msg_1", "text": text})


async def everything_of(stores: Stores) -> tuple[object, ...]:
    """All there is to read of run 1, for "nothing changed"."""
    return (
        await stored(stores, RUN),
        await stores.runs.events(ORG, RUN, after_seq=0, limit=1000),
        await messages_of(stores.runs, ORG, RUN),
        await stores.runs.tool_calls(ORG, RUN),
        await all_of(partial(stores.threads.messages, ORG, THREAD)),
        await all_of(partial(stores.audit.page, ORG, AuditFilter())),
    )


# --- storing a step ---


@pytest.mark.requirement("E2", "E3", "C5", "A10")
async def test_everything_in_a_step_is_stored_with_it(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    first, second = a_tool_call(0, server_id=SERVER), a_tool_call(1, name="nope", type=None, repeatable=True)
    refused = a_settled_call(second, ToolResult.failed("tool_not_found", "no such tool"), duration_ms=0)
    asked = reply_step(claimed.run, first, second)
    settled = settle_step(claimed.run, refused)
    step = replace(asked, settled=settled.settled, audit=settled.audit, events=(*asked.events, *settled.events))

    outcome = await run_stores.journal.commit(claimed.lease, step)

    run = await stored(run_stores, RUN)
    assert run == replace(step.run, last_seq=claimed.run.last_seq + len(step.events))
    assert run.usage == Usage().after_turn(some_usage())
    assert (outcome.last_seq, outcome.promoted) == (run.last_seq, None)
    assert (await messages_of(run_stores.runs, ORG, RUN))[1:] == step.messages
    events = await run_stores.runs.events(ORG, RUN, after_seq=claimed.run.last_seq, limit=10)
    assert [(event.type, event.at, event.data) for event in events] == [
        (event.type, event.at, event.data) for event in step.events
    ]
    recorded, answered = await run_stores.runs.tool_calls(ORG, RUN)
    assert recorded == first
    assert answered == refused
    (entry,) = await all_of(partial(run_stores.audit.page, ORG, AuditFilter(action="tool.*")))
    assert entry == step.audit[0]


@pytest.mark.requirement("A1")
async def test_every_field_that_a_worker_may_change_is_stored(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    running = replace(
        claimed.run,
        active_s=1.25,
        overview="Servers: files",
        usage=Usage(
            input_tokens=1, output_tokens=2, cached_tokens=3, reasoning_tokens=1, turns=4, tool_calls=5, estimated=True
        ),
    )
    await run_stores.journal.commit(claimed.lease, Step(run=running))
    assert await stored(run_stores, RUN) == running

    waiting = running.suspended((a_tool_use(a_displayable_call()),), output="Shall I?")
    calls = (a_displayable_call(),)
    events = (NewEvent(type=RunEventType.RUN_REQUIRES_ACTION, at=START, data={}),)
    await run_stores.journal.commit(claimed.lease, Step(run=waiting, recorded=calls, events=events))
    assert await stored(run_stores, RUN) == replace(waiting, last_seq=running.last_seq + 1)


@pytest.mark.requirement("A7", "A8")
@pytest.mark.parametrize(
    ("status", "error", "reason"),
    [
        (RunStatus.COMPLETED, None, None),
        (RunStatus.INCOMPLETE, None, IncompleteReason.MAX_COST),
        (RunStatus.FAILED, RunError(code="model_auth", detail="The key is wrong."), None),
        (
            RunStatus.FAILED,
            RunError(
                code="model_auth",
                detail="The key is wrong.",
                provider_error=ProviderError(status=None, code=None, message="Kein Schlüssel 🙂"),
            ),
            None,
        ),
        (RunStatus.CANCELLED, None, None),
        (RunStatus.HALTED, None, None),
    ],
)
async def test_each_ending_is_stored_with_its_reason(
    run_stores: Stores, status: RunStatus, error: RunError | None, reason: IncompleteReason | None
) -> None:
    claimed = await start_and_claim(run_stores)
    ended = claimed.run.ended(status, at=after(9), output="So far.", error=error, incomplete_reason=reason)
    await run_stores.journal.commit(claimed.lease, Step(run=ended))
    assert await stored(run_stores, RUN) == ended


async def test_every_kind_of_call_and_result_is_read_back_as_it_was(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    image = ImageContent(media_type="image/png", data="iVBORw0KGgo=")
    results = (
        ToolResult.succeeded(""),
        ToolResult.succeeded("text 🙂\x1b", (image,)),
        ToolResult.succeeded("", (), (FileContent(media_type="audio/wav", data="UklGRg=="),)),
        ToolResult.failed("tool_timeout", "too slow"),
        ToolResult.blocked("policy_denied", "not allowed"),
        ToolResult.unknown("nobody knows"),
    )
    calls = [
        replace(
            a_tool_call(index, type=kind, params={"n": index, "ü": [None, {"x": 1.5}]}),
            called_as="call_tool" if index % 2 else None,
        )
        for index, kind in enumerate((None, *list(ToolType)[:5]))
    ]
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, *calls))
    for call, result in zip(calls, results, strict=True):
        settled = a_settled_call(call, result, duration_ms=12, at=after(0.000001))
        await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, settled))
    assert await run_stores.runs.tool_calls(ORG, RUN) == tuple(
        replace(call, state=ToolCallState.SETTLED, result=result, duration_ms=12, settled_at=after(0.000001))
        for call, result in zip(calls, results, strict=True)
    )


async def test_calls_are_listed_by_turn_and_place_in_the_turn(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    places = [(2, 1), (1, 10), (1, 2), (2, 0), (10, 0)]
    calls = tuple(a_tool_call(index, turn=turn) for turn, index in places)
    await run_stores.journal.commit(claimed.lease, Step(run=claimed.run, recorded=calls))
    listed = await run_stores.runs.tool_calls(ORG, RUN)
    assert [(call.turn, call.index) for call in listed] == sorted(places)


@pytest.mark.requirement("E3")
async def test_results_are_readable_until_a_message_carries_them_and_their_outcome_after(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    calls = (a_tool_call(0), a_tool_call(1))
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, *calls))
    results = (ToolResult.succeeded("42"), ToolResult.failed("mcp_error", "broken"))
    for call, result in zip(calls, results, strict=True):
        await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(call, result)))
    settled = await run_stores.runs.tool_calls(ORG, RUN)
    assert tuple(call.result for call in settled) == results

    await run_stores.journal.commit(claimed.lease, answer_step(claimed.run, *settled))

    message = (await messages_of(run_stores.runs, ORG, RUN))[-1]
    assert [(result.result, result.is_error) for result in message.tool_results] == [("42", False), ("broken", True)]
    outcomes = []
    for call in await run_stores.runs.tool_calls(ORG, RUN):
        assert call.result is not None
        outcomes.append((call.state, call.result.outcome, call.result.error_code, call.duration_ms))
    assert outcomes == [
        (ToolCallState.SETTLED, ToolOutcome.SUCCEEDED, None, 5),
        (ToolCallState.SETTLED, ToolOutcome.FAILED, "mcp_error", 5),
    ]


# --- all or nothing ---


@pytest.mark.requirement("E2", "E3")
@pytest.mark.parametrize("fault", ["never recorded", "settled before", "settled twice in the step"])
async def test_a_step_that_cannot_be_stored_whole_is_not_stored_at_all(run_stores: Stores, fault: str) -> None:
    claimed = await start_and_claim(run_stores)
    done = a_tool_call(0)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, done))
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(done)))
    before = await everything_of(run_stores)
    good = a_tool_call(0, turn=2)
    wrong: dict[str, tuple[ToolCall, ...]] = {
        "never recorded": (a_settled_call(a_tool_call(7)),),
        "settled before": (a_settled_call(done, ToolResult.succeeded("other")),),
        "settled twice in the step": (a_settled_call(good), a_settled_call(good)),
    }
    step = reply_step(claimed.run, good)
    message = tool_message(claimed.run, (a_settled_call(good),), at=START)
    assert message is not None

    with pytest.raises(ValueError, match="call"):
        await run_stores.journal.commit(
            claimed.lease,
            replace(
                step,
                run=finish_step(claimed.run).run,
                messages=(*step.messages, message),
                settled=wrong[fault],
                audit=finish_step(claimed.run).audit,
            ),
        )

    assert await everything_of(run_stores) == before
    outcome = await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, good))
    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert [event.seq for event in events] == list(range(1, outcome.last_seq + 1))


Write = Callable[[RunJournal], Awaitable[object]]


@pytest.mark.requirement("E4")
async def test_a_stale_lease_changes_nothing_and_says_so(run_stores: Stores) -> None:
    stale = await start_and_claim(run_stores)
    call = a_tool_call()
    await run_stores.journal.commit(stale.lease, reply_step(stale.run, call))
    await run_stores.leases.hand_back(stale.lease, active_s=0.0, at=after(1))
    fresh = await claim(run_stores, RUN, at=after(2))
    before = await everything_of(run_stores)
    writes: tuple[Write, ...] = (
        lambda journal: journal.commit(stale.lease, settle_step(stale.run, a_settled_call(call))),
        lambda journal: journal.commit(stale.lease, finish_step(stale.run)),
        lambda journal: journal.commit(stale.lease, Step(run=stale.run)),
        lambda journal: journal.commit(replace(stale.lease, epoch=fresh.lease.epoch + 1), finish_step(fresh.run)),
        lambda journal: journal.append(stale.lease, (a_delta(),)),
    )
    for write in writes:
        with pytest.raises(LeaseLost) as lost:
            await write(run_stores.journal)
        assert lost.value.run_id == RUN
    assert await run_stores.journal.cancel_requested_by(stale.lease)
    assert not await run_stores.journal.cancel_requested_by(fresh.lease)
    assert await everything_of(run_stores) == before
    await run_stores.journal.commit(fresh.lease, finish_step(fresh.run))


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("how", ["ended", "suspended", "deleted"])
async def test_a_lease_ends_with_the_step_that_ends_or_suspends_the_run(run_stores: Stores, how: str) -> None:
    claimed = await start_and_claim(run_stores)
    call = a_displayable_call()
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    last = suspend_step(claimed.run, call) if how == "suspended" else finish_step(claimed.run)
    await run_stores.journal.commit(claimed.lease, last)
    if how == "deleted":
        await run_stores.threads.delete(ORG, THREAD, a_deletion())
    with pytest.raises(LeaseLost):
        await run_stores.journal.append(claimed.lease, (a_delta(),))
    with pytest.raises(LeaseLost):
        await run_stores.journal.commit(claimed.lease, finish_step(claimed.run))
    assert await run_stores.journal.cancel_requested_by(claimed.lease)
    assert not await run_stores.leases.hand_back(claimed.lease, active_s=1.0, at=after(5))
    if how != "deleted":
        assert (await stored(run_stores, RUN)).status is last.run.status


# --- numbering ---


@pytest.mark.requirement("E2")
async def test_seq_has_no_gap_and_no_double_when_a_worker_writes_concurrently(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    calls = tuple(a_tool_call(index) for index in range(8))
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, *calls))

    async with asyncio.TaskGroup() as group:
        for index in range(12):
            texts = (f"{index}a", f"{index}b")
            group.create_task(run_stores.journal.append(claimed.lease, tuple(a_delta(text) for text in texts)))
        for call in calls:
            group.create_task(run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(call))))

    events = await run_stores.runs.events(ORG, RUN, after_seq=0, limit=1000)
    assert [event.seq for event in events] == list(range(1, (await stored(run_stores, RUN)).last_seq + 1))
    texts_in_order = [str(event.data["text"]) for event in events if event.type is RunEventType.MESSAGE_DELTA]
    assert sorted(texts_in_order) == sorted(f"{index}{part}" for index in range(12) for part in "ab")
    pairs = list(zip(texts_in_order[::2], texts_in_order[1::2], strict=True))
    assert all(first[:-1] == second[:-1] for first, second in pairs), "events of one call stay together"
    settled = [event.data["tool_call_id"] for event in events if event.type is RunEventType.TOOL_EXECUTED]
    assert sorted(map(str, settled)) == sorted(call.id for call in calls)


@pytest.mark.requirement("E2")
async def test_runs_are_numbered_apart_from_each_other(run_stores: Stores) -> None:
    first = await start_and_claim(run_stores, run_number(1))
    await run_stores.journal.append(first.lease, (a_delta(), a_delta()))
    await start(run_stores, run_number(2))
    (event,) = await run_stores.runs.events(ORG, a_run_id(2), after_seq=0, limit=10)
    assert event.seq == 1


async def test_appending_no_events_is_nothing(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    before = await everything_of(run_stores)
    await run_stores.journal.append(claimed.lease, ())
    assert await everything_of(run_stores) == before


# --- making room ---


@pytest.mark.requirement("E5")
async def test_only_the_ending_of_a_run_makes_room_for_the_next(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    for number in (3, 2):
        await start(run_stores, run_number(number))
    call = a_tool_call(state=ToolCallState.AWAITING_CLIENT)
    asked = await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, call))
    suspended = await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, call))
    assert (asked.promoted, suspended.promoted) == (None, None)
    await resume(run_stores.runs, ORG, RUN, (a_settled_call(call),), actor=KEY, at=after(9))
    resumed = await claim(run_stores, RUN)
    ended = await run_stores.journal.commit(resumed.lease, finish_step(resumed.run, RunStatus.FAILED))
    assert ended.promoted == a_run_id(2)
