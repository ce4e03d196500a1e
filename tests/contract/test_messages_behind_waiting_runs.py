"""The contract of runs that wait while the thread's next message is there already (D5)."""

import pytest

from domain.approvals.approval import ApprovalOutcome, ApprovalState
from domain.errors import ServiceError
from domain.runs.closing import DISPLAYED
from domain.runs.ledger import ToolCallState
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.turn_end import turn_end
from tests.approval_builders import awaiting_approval_call
from tests.builders import KEY, ORG, RUN, WORKER, a_displayable_call, a_run_id, a_settled_call, a_tool_call, after
from tests.contract.run_changes import messages_of, resume
from tests.contract.run_steps import (
    LEASE_S,
    claim,
    reply_step,
    run_number,
    settle_step,
    start,
    start_and_claim,
    stored,
    suspend_step,
)
from tests.contract.stores import Stores


async def event_types(stores: Stores) -> list[str]:
    events = await stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    return [event.type.value for event in events]


@pytest.mark.requirement("D5", "E5")
async def test_a_run_that_begins_to_wait_for_display_only_completes_when_a_message_waits_behind_it(
    run_stores: Stores,
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    done, shown = a_tool_call(0), a_displayable_call(1)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, done, shown))
    await run_stores.journal.commit(claimed.lease, settle_step(claimed.run, a_settled_call(done)))
    await start(run_stores, run_number(2))

    outcome = await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, shown, at=after(5)))

    run = await stored(run_stores, RUN)
    assert (run.status, run.output, run.pending, run.finished_at) == (RunStatus.COMPLETED, "Shown.", (), after(5))
    assert (outcome.last_seq, outcome.promoted) == (run.last_seq, a_run_id(2))
    assert outcome.ending is not None
    assert (outcome.ending.run.status, outcome.ending.run.output) == (RunStatus.COMPLETED, "Shown.")
    assert [call.id for call in outcome.ending.settled] == [shown.id]
    answer = (await messages_of(run_stores.runs, ORG, RUN))[-1]
    assert [result.result for result in answer.tool_results] == ["done", DISPLAYED]
    assert (await event_types(run_stores))[-4:] == [
        "run.requires_action",
        "tool.executed",
        "message.completed",
        "run.completed",
    ]
    await claim(run_stores, a_run_id(2), at=after(6))


@pytest.mark.requirement("D5", "E5")
async def test_a_run_that_begins_to_wait_for_more_than_display_waits_before_the_message_behind_it(
    run_stores: Stores,
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2))
    asks, shown = a_tool_call(0, state=ToolCallState.AWAITING_CLIENT), a_displayable_call(1)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, asks, shown))

    outcome = await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, asks, shown))

    assert (outcome.promoted, outcome.ending) == (None, None)
    assert (await stored(run_stores, RUN)).status is RunStatus.REQUIRES_ACTION


@pytest.mark.requirement("D5", "E5")
async def test_a_run_that_lacks_display_only_after_it_was_given_the_rest_completes_when_a_message_waits_behind_it(
    run_stores: Stores,
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    await start(run_stores, run_number(2))
    asks, shown = a_tool_call(0, state=ToolCallState.AWAITING_CLIENT), a_displayable_call(1)
    await run_stores.journal.commit(claimed.lease, reply_step(claimed.run, asks, shown))
    await run_stores.journal.commit(claimed.lease, suspend_step(claimed.run, asks, shown))

    resumed = await resume(run_stores.runs, ORG, RUN, (a_settled_call(asks),), actor=KEY, at=after(5))

    assert (resumed.status, resumed.pending) == (RunStatus.QUEUED, ())
    assert await run_stores.leases.claim(a_run_id(2), WORKER, lease_s=LEASE_S, at=after(6)) is None
    again = await claim(run_stores, RUN, at=after(6))
    outcome = await run_stores.journal.commit(again.lease, suspend_step(again.run, shown, at=after(7)))
    assert ((await stored(run_stores, RUN)).status, outcome.promoted) == (RunStatus.COMPLETED, a_run_id(2))


@pytest.mark.requirement("D5", "E5")
@pytest.mark.parametrize("strategy", MultitaskStrategy)
async def test_a_message_has_a_run_that_lacks_display_only_make_its_approved_calls_first(
    run_stores: Stores, strategy: MultitaskStrategy
) -> None:
    claimed = await start_and_claim(run_stores, run_number(1))
    asks, shown = awaiting_approval_call(a_tool_call(0)), a_displayable_call(1)
    reply = reply_step(claimed.run, asks, shown)
    await run_stores.journal.commit(claimed.lease, reply)
    wait = turn_end(reply.run, (asks, shown), list(reply.messages), at=after(1))
    assert wait is not None
    await run_stores.journal.commit(claimed.lease, wait)
    approved = ApprovalOutcome(approval_id=wait.approvals[0].id, state=ApprovalState.APPROVED, at=after(2), by=KEY)
    waiting = await resume(run_stores.runs, ORG, RUN, (), outcomes=(approved,), actor=KEY, at=after(2))
    assert (waiting.status, [use.id for use in waiting.pending]) == (RunStatus.REQUIRES_ACTION, [shown.id])

    if strategy is MultitaskStrategy.REJECT:
        with pytest.raises(ServiceError):
            await start(run_stores, run_number(2), strategy=strategy)
        assert await stored(run_stores, RUN) == waiting
        return
    started = await start(run_stores, run_number(2), strategy=strategy)

    if strategy is MultitaskStrategy.ENQUEUE:
        assert ((await stored(run_stores, RUN)).status, started.promoted) == (RunStatus.QUEUED, RUN)
        assert (started.interrupted, started.ended) == ((), ())
        assert (await event_types(run_stores))[-1] == "run.resumed"
        again = await claim(run_stores, RUN, at=after(6))
        assert [call.state for call in again.open_calls] == [ToolCallState.APPROVED, ToolCallState.AWAITING_CLIENT]
    else:
        assert (await stored(run_stores, RUN)).status is RunStatus.CANCELLED
        assert started.interrupted == (RUN,)
