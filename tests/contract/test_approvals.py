"""What every store promises of approvals and their timers."""

from dataclasses import replace
from functools import partial

import pytest

from application.approvals.ports import TIMERS_TOPIC, ApprovalFilter
from application.audit.ports import AuditFilter
from application.runs.ports import ClaimedRun
from application.system.pages import PageRequest
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, Consent, approval_digest
from domain.approvals.decision import consent_audit
from domain.errors import ServiceError
from domain.ids import ApprovalId
from domain.policy.approvers import Approvers
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run, RunStatus
from domain.runs.step import Step
from domain.runs.turn_end import turn_end
from tests.approval_builders import awaiting_approval_call
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    START,
    a_deletion,
    a_displayable_call,
    a_run_id,
    a_thread,
    a_thread_id,
    a_tool_call,
    after,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, resume
from tests.contract.run_steps import claim, reply_step, run_number, start_and_claim, stored
from tests.contract.stores import Stores

TTL_S = 60.0


def waiting_call(index: int = 0, *, run: Run | None = None) -> ToolCall:
    run_id = RUN if run is None else run.id
    return awaiting_approval_call(a_tool_call(index, run_id=run_id), ttl_s=TTL_S)


async def a_waiting_run(stores: Stores, *calls: ToolCall, run: Run | None = None) -> tuple[ClaimedRun, Approval]:
    """A run that waits for approvals of these calls (of one call otherwise); the first of them."""
    calls = calls or (waiting_call(run=run),)
    claimed = await start_and_claim(stores, run)
    reply = reply_step(claimed.run, *calls)
    await stores.journal.commit(claimed.lease, reply)
    end = turn_end(reply.run, calls, list(reply.messages), at=START)
    assert end is not None
    await stores.journal.commit(claimed.lease, end)
    return claimed, end.approvals[0]


def ended(approval: Approval, state: ApprovalState = ApprovalState.APPROVED, **more: object) -> ApprovalOutcome:
    return ApprovalOutcome(approval_id=approval.id, state=state, at=after(5), by=KEY, **more)  # type: ignore[arg-type]


async def approvals_of(stores: Stores) -> list[Approval]:
    return list(await stores.approvals.of_run(ORG, RUN))


@pytest.mark.requirement("C3", "P2")
async def test_an_approval_and_its_call_keep_who_may_decide(run_stores: Stores) -> None:
    approvers = (Approvers(people=("usr_ann",), groups=("Leads",)), Approvers(groups=("Finance",)))
    call = awaiting_approval_call(a_tool_call(run_id=RUN), ttl_s=TTL_S, approvers=approvers)
    _, approval = await a_waiting_run(run_stores, call, waiting_call(1))
    stored_approval = await run_stores.approvals.get(ORG, approval.id)
    assert stored_approval is not None
    assert stored_approval.approvers == approvers
    assert [each.approvers for each in await approvals_of(run_stores) if each.id != approval.id] == [None]
    [stored_call, other] = sorted(await run_stores.runs.tool_calls(ORG, RUN), key=lambda each: each.id != call.id)
    assert stored_call.approval is not None
    assert other.approval is not None
    assert (stored_call.approval.approvers, other.approval.approvers) == (approvers, ())


@pytest.mark.requirement("C3")
async def test_a_run_that_waits_has_its_approvals_and_their_timers(run_stores: Stores) -> None:
    async with run_stores.wakeups.subscribe(TIMERS_TOPIC) as added:
        _, approval = await a_waiting_run(run_stores, waiting_call(0), waiting_call(1), a_displayable_call(2))
        assert await added.wait(60)
    first, second = await approvals_of(run_stores)
    assert approval in (first, second)
    assert await run_stores.approvals.get(ORG, approval.id) == approval
    assert await run_stores.approvals.get(OTHER_ORG, approval.id) is None
    assert await run_stores.approvals.get(ORG, ApprovalId("apr_x")) is None
    assert await run_stores.approvals.of_run(OTHER_ORG, RUN) == ()
    run = await stored(run_stores, RUN)
    assert [use.approval is not None for use in run.pending] == [True, True, False]
    shown = run.pending[0].approval
    assert shown is not None
    assert (shown.approval_id, shown.expires_at) == (approval.id, after(TTL_S))
    assert await run_stores.timers.next_due() == after(TTL_S)
    assert await run_stores.timers.due(at=after(TTL_S - 1), limit=9) == ()
    due = await run_stores.timers.due(at=after(TTL_S), limit=9)
    assert {timer.subject_id for timer in due} == {first.id, second.id}
    [earliest] = await run_stores.timers.due(at=after(TTL_S), limit=1)
    assert await run_stores.timers.due(at=after(TTL_S), limit=9, after=earliest) == due[1:]
    assert await run_stores.timers.due(at=after(TTL_S), limit=9, after=due[-1]) == ()
    assert [call.state for call in await run_stores.runs.tool_calls(ORG, RUN)][:2] == [
        ToolCallState.AWAITING_APPROVAL
    ] * 2


@pytest.mark.requirement("C3", "E3")
async def test_a_call_that_may_have_been_sent_is_shown_as_such_and_decided_about(run_stores: Stores) -> None:
    lost = awaiting_approval_call(a_tool_call(0), outcome_unknown=True)
    await a_waiting_run(run_stores, lost, waiting_call(1))
    run = await stored(run_stores, RUN)
    assert [use.approval and use.approval.outcome_unknown for use in run.pending] == [True, False]
    assert [call.was_perhaps_sent for call in await run_stores.runs.tool_calls(ORG, RUN)] == [True, False]
    outcomes = tuple(ended(approval, ApprovalState.DENIED) for approval in await approvals_of(run_stores))
    await resume(run_stores.runs, ORG, RUN, (), outcomes=outcomes, actor=KEY, at=after(5))
    results = [call.result for call in await run_stores.runs.tool_calls(ORG, RUN)]
    assert [result and result.error_code for result in results] == ["outcome_unknown", "approval_denied"]


@pytest.mark.requirement("C3")
async def test_an_approved_call_is_claimed_as_it_was_approved(run_stores: Stores) -> None:
    _, approval = await a_waiting_run(run_stores)
    outcome = ended(approval, reason="Fine.", edited_arguments={"text": "better"})
    resumed = await resume(run_stores.runs, ORG, RUN, (), outcomes=(outcome,), actor=KEY, at=after(5))
    assert (resumed.status, resumed.pending) == (RunStatus.QUEUED, ())
    [decided] = await approvals_of(run_stores)
    assert (decided.state, decided.decided_at, decided.decided_by) == (ApprovalState.APPROVED, after(5), KEY)
    assert (decided.reason, decided.edited_arguments, decided.arguments) == (
        "Fine.",
        {"text": "better"},
        {"text": "hi"},
    )
    assert await run_stores.timers.next_due() is None
    [call] = (await claim(run_stores, RUN, at=after(6))).open_calls
    assert (call.state, call.params) == (ToolCallState.APPROVED, {"text": "better"})
    assert call.approval is not None
    assert call.approval.digest == approval_digest(call.name, call.params, 1)


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("state", [ApprovalState.DENIED, ApprovalState.EXPIRED])
async def test_a_refused_call_is_settled_with_its_audit_in_the_same_step(
    run_stores: Stores, state: ApprovalState
) -> None:
    _, approval = await a_waiting_run(run_stores, waiting_call(0), waiting_call(1))
    waiting = await resume(run_stores.runs, ORG, RUN, (), outcomes=(ended(approval, state),), actor=KEY, at=after(5))
    assert (waiting.status, len(waiting.pending)) == (RunStatus.REQUIRES_ACTION, 1)
    assert waiting == await stored(run_stores, RUN)
    first, second = await run_stores.runs.tool_calls(ORG, RUN)
    assert first.result is not None
    assert (first.state, first.result.error_code) == (ToolCallState.SETTLED, f"approval_{state.value}")
    assert second.state is ToolCallState.AWAITING_APPROVAL
    actions = [
        entry.action.value for entry in (await run_stores.audit.page(ORG, AuditFilter(run_id=RUN), PageRequest())).items
    ]
    assert {"tool.denied", "tool.blocked"} <= set(actions)
    assert len(await run_stores.timers.due(at=after(TTL_S), limit=9)) == 1


@pytest.mark.requirement("C3")
async def test_a_stale_approval_sends_the_run_on_with_the_call_undecided(run_stores: Stores) -> None:
    _, approval = await a_waiting_run(run_stores, waiting_call(0), a_displayable_call(1))
    stale = ended(approval, ApprovalState.STALE)
    resumed = await resume(run_stores.runs, ORG, RUN, (), outcomes=(stale,), actor="system", at=after(5))
    assert resumed.status is RunStatus.QUEUED
    calls = (await claim(run_stores, RUN, at=after(6))).open_calls
    assert [call.state for call in calls] == [ToolCallState.UNDECIDED, ToolCallState.AWAITING_CLIENT]
    assert [entry.state for entry in await approvals_of(run_stores)] == [ApprovalState.STALE]


@pytest.mark.requirement("C3")
async def test_what_is_not_pending_any_more_is_not_decided_and_then_nothing_changes(run_stores: Stores) -> None:
    _, approval = await a_waiting_run(run_stores, waiting_call(0), waiting_call(1))
    await resume(
        run_stores.runs, ORG, RUN, (), outcomes=(ended(approval, ApprovalState.DENIED),), actor=KEY, at=after(5)
    )
    [other] = [entry for entry in await approvals_of(run_stores) if entry.state is ApprovalState.PENDING]
    before = (await stored(run_stores, RUN), await approvals_of(run_stores))
    for outcomes, at, code in (
        ((ended(other), ended(approval)), after(6), "approval_decided"),
        ((ended(other), ended(other)), after(6), "approval_decided"),
        ((ended(other),), after(TTL_S), "approval_expired"),
    ):
        with pytest.raises(ServiceError) as refused:
            await resume(run_stores.runs, ORG, RUN, (), outcomes=outcomes, actor=KEY, at=at)
        assert refused.value.code == code
    assert (await stored(run_stores, RUN), await approvals_of(run_stores)) == before


@pytest.mark.requirement("A12", "C3")
async def test_the_end_of_a_run_closes_its_approvals(run_stores: Stores) -> None:
    await a_waiting_run(run_stores)
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
    assert [entry.state for entry in await approvals_of(run_stores)] == [ApprovalState.CANCELLED]
    assert await run_stores.timers.next_due() is None


@pytest.mark.requirement("C3")
async def test_a_run_asked_to_stop_while_it_begins_to_wait_leaves_no_approval_pending(run_stores: Stores) -> None:
    claimed = await start_and_claim(run_stores)
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(1))
    call = waiting_call()
    reply = reply_step(claimed.run, call)
    await run_stores.journal.commit(claimed.lease, reply)
    end = turn_end(reply.run, (call,), list(reply.messages), at=after(2))
    assert end is not None
    await run_stores.journal.commit(claimed.lease, end)
    assert (await stored(run_stores, RUN)).status is RunStatus.CANCELLED
    assert [entry.state for entry in await approvals_of(run_stores)] == [ApprovalState.CANCELLED]
    assert await run_stores.timers.next_due() is None


@pytest.mark.requirement("C3")
async def test_deleting_a_thread_removes_its_approvals(run_stores: Stores) -> None:
    _, approval = await a_waiting_run(run_stores)
    await cancel(run_stores.runs, ORG, RUN, actor=KEY, at=after(3))
    run = await stored(run_stores, RUN)
    assert await run_stores.threads.delete(ORG, run.thread_id, a_deletion(run.thread_id))
    assert await run_stores.approvals.get(ORG, approval.id) is None


@pytest.mark.requirement("C3")
async def test_approvals_are_listed_newest_first_by_state_and_run(run_stores: Stores) -> None:
    found = []
    for number in (1, 2, 3):
        thread_id = a_thread_id(10 + number)
        await run_stores.threads.add(a_thread(thread_id))
        run = run_number(10 + number, thread_id=thread_id)
        found.append((await a_waiting_run(run_stores, run=run))[1])
    await cancel(run_stores.runs, ORG, a_run_id(12), actor=KEY, at=after(3))

    async def listed(wanted: ApprovalFilter) -> set[str]:
        return {entry.id for entry in await all_of(partial(run_stores.approvals.page, ORG, wanted))}

    ids = [approval.id for approval in found]
    assert await listed(ApprovalFilter()) == set(ids)
    assert await listed(ApprovalFilter(state=ApprovalState.PENDING)) == {ids[0], ids[2]}
    assert await listed(ApprovalFilter(state=ApprovalState.CANCELLED)) == {ids[1]}
    assert await listed(ApprovalFilter(run_id=a_run_id(13))) == {ids[2]}
    assert (await run_stores.approvals.page(OTHER_ORG, ApprovalFilter(), PageRequest())).items == ()


@pytest.mark.requirement("C3", "E3")
async def test_an_approved_call_is_recorded_before_it_is_sent(run_stores: Stores) -> None:
    _, approval = await a_waiting_run(run_stores)
    await resume(run_stores.runs, ORG, RUN, (), outcomes=(ended(approval),), actor=KEY, at=after(5))
    claimed = await claim(run_stores, RUN, at=after(6))
    [call] = claimed.open_calls
    sent = replace(call, state=ToolCallState.RECORDED)
    await run_stores.journal.commit(claimed.lease, Step(run=claimed.run, changed=(sent,)))
    assert await run_stores.runs.tool_calls(ORG, RUN) == (sent,)


@pytest.mark.requirement("C3", "P2")
async def test_an_approval_keeps_how_many_people_must_approve_and_who_did(run_stores: Stores) -> None:
    call = awaiting_approval_call(a_tool_call(), ttl_s=TTL_S, needed=2)
    _, approval = await a_waiting_run(run_stores, call)
    [stored_approval] = await approvals_of(run_stores)
    assert (stored_approval.needed, stored_approval.consents, stored_approval.has_enough) == (2, None, False)
    given = approval.with_consent(Consent(by="key_1", person="usr_ann", at=after(1)))
    entry = consent_audit(given, Consent(by="key_1", person="usr_ann", at=after(1)))
    assert await run_stores.approvals.consent(ORG, approval.id, lambda _: (given, entry)) == given
    assert await approvals_of(run_stores) == [given]
    assert await run_stores.approvals.consent(ORG, approval.id, lambda _: None) == given
    found = await run_stores.audit.page(ORG, AuditFilter(action=entry.action), PageRequest(limit=5))
    assert [each.details for each in found.items] == [{"approval_id": approval.id, "approvals": 1, "needed": 2}]
    with pytest.raises(ServiceError):
        await run_stores.approvals.consent(OTHER_ORG, approval.id, lambda _: None)
