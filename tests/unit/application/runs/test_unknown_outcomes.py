"""Calls that a crash cut off and that may not be repeated: the model is told, or a person decides
about sending them again."""

import pytest
from pytest_mock import MockerFixture

from application.mcp.ports import McpInputRequired, McpReply
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import ServiceError
from domain.ids import RunId
from domain.mcp.behavior import ElicitationPolicy
from domain.mcp.elicitation import Elicitation
from domain.policy.rules import OnUnknownOutcome, ToolPolicies, ToolRule, Verdict
from domain.runs.run import RunStatus
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.approving import (
    READ,
    SEND,
    a_harness,
    approvals,
    asks_first,
    decide,
    denies,
    fire_timers,
    sends,
    states,
)
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

AGAIN = ToolRule(on_unknown_outcome=OnUnknownOutcome.REQUIRE_APPROVAL)


def policies(rule: ToolRule = AGAIN, pattern: str = SEND) -> ToolPolicies:
    return ToolPolicies(rules=((pattern, rule),))


def approve(approval: Approval) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=True)


def deny(approval: Approval, reason: str | None = None) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=False, reason=reason)


def sent(harness: RunHarness) -> list[str]:
    return harness.server_calls()


async def a_run_that_asks(
    mocker: MockerFixture, *turns: ModelTurn, rule: ToolRule = AGAIN
) -> tuple[RunHarness, RunId, Approval]:
    """Its worker was lost when the call had been sent and was not settled; the next worker has it
    wait for a person."""
    harness = a_harness(*turns, policies=policies(rule))
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    assert sent(harness) == ["send"]
    await harness.worker.execute(run_id)
    return harness, run_id, approvals(harness, run_id)[-1]


@pytest.mark.requirement("C3", "E3")
async def test_by_policy_a_person_is_asked_whether_a_call_with_an_unknown_outcome_is_sent_again(
    mocker: MockerFixture,
) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    run = harness.run(run_id)
    [use] = run.pending
    assert (run.status, use.name, use.params) == (RunStatus.REQUIRES_ACTION, SEND, {"text": "hello"})
    assert use.approval is not None
    assert (use.approval.approval_id, use.approval.outcome_unknown) == (approval.id, True)
    assert "unknown" in approval.cause
    assert "again" in approval.cause
    assert SEND in approval.cause
    assert sent(harness) == ["send"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
async def test_an_approved_call_is_sent_once_more_under_the_key_it_had(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    await decide(harness, run_id, approve(approval))
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == ["sent hello"]
    keys = [
        recorded.call.meta and recorded.call.meta["dragoman/idempotency-key"] for recorded in harness.connections.calls
    ]
    assert keys == [approval.tool_call_id] * 2
    assert states(harness, run_id) == [ApprovalState.APPROVED]
    assert "tool.approved" in harness.actions(run_id)
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
async def test_of_a_call_that_is_not_to_be_sent_again_the_model_is_told_that_its_outcome_is_unknown(
    mocker: MockerFixture,
) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    harness.clock.advance(1)
    await decide(harness, run_id, deny(approval, "It has arrived."))
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "outcome_unknown"
    assert "denied" in entry.result.text
    assert "It has arrived." in harness.results()[0]
    assert sent(harness) == ["send"]
    assert {"tool.denied", "tool.failed"} <= set(harness.actions(run_id))
    assert [told.call.result for told in harness.tracer.tool_calls] == [entry.result]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
async def test_a_call_that_nobody_decides_about_in_time_is_not_sent_again(mocker: MockerFixture) -> None:
    harness, run_id, _ = await a_run_that_asks(
        mocker, rule=ToolRule(on_unknown_outcome=OnUnknownOutcome.REQUIRE_APPROVAL, approval_ttl_s=60)
    )
    harness.clock.advance(61)
    assert await fire_timers(harness).execute() == 1
    await harness.worker.execute(run_id)
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert (entry.result.error_code, sent(harness)) == ("outcome_unknown", ["send"])
    assert states(harness, run_id) == [ApprovalState.EXPIRED]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3", "E4")
@pytest.mark.parametrize("commits", [0, 1])
async def test_a_crash_before_the_run_begins_to_wait_or_before_it_is_decided_at_all_leaves_one_approval(
    mocker: MockerFixture, commits: int
) -> None:
    harness = a_harness(policies=policies())
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    await crash_after(harness, mocker, commits)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert states(harness, run_id) == [ApprovalState.PENDING]
    assert sent(harness) == ["send"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3", "E4")
async def test_a_crash_between_approval_and_sending_uses_the_approval_once(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    await decide(harness, run_id, approve(approval))
    await crash_after(harness, mocker, 0)
    assert sent(harness) == ["send"]
    await harness.worker.execute(run_id)
    assert (sent(harness), harness.results()) == (["send"] * 2, ["sent hello"])
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3", "E4")
async def test_a_crash_after_sending_again_asks_anew_and_the_old_approval_is_used_up(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    await decide(harness, run_id, approve(approval))
    await crash_after(harness, mocker, 1)
    assert sent(harness) == ["send"] * 2
    await harness.worker.execute(run_id)
    assert states(harness, run_id) == [ApprovalState.APPROVED, ApprovalState.PENDING]
    [again] = [found for found in approvals(harness, run_id) if found.state is ApprovalState.PENDING]
    await decide(harness, run_id, deny(again))
    await harness.worker.execute(run_id)
    assert sent(harness) == ["send"] * 2
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
async def test_an_approval_to_send_again_is_stale_once_the_agent_has_changed(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    harness.change_agent(instructions="Be careful.")
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, approve(approval))
    assert refused.value.code == "approval_stale"
    await harness.worker.execute(run_id)
    assert states(harness, run_id) == [ApprovalState.STALE, ApprovalState.PENDING]
    harness.change_agent(tool_policies=ToolPolicies())
    with pytest.raises(ServiceError):
        await decide(harness, run_id, approve(approvals(harness, run_id)[1]))
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert sent(harness) == ["send"], "the policy that is in force now has the model informed"
    assert "unknown" in harness.results()[0]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
async def test_the_arguments_of_a_call_that_may_have_been_sent_are_not_edited(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    edited = CallDecision(tool_call_id=approval.tool_call_id, approve=True, arguments={"text": "other"})
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, edited)
    assert refused.value.code == "arguments_invalid"
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION


@pytest.mark.requirement("C2", "E3")
async def test_a_call_that_is_denied_meanwhile_is_not_asked_about(mocker: MockerFixture) -> None:
    harness, run_id, approval = await a_run_that_asks(mocker)
    await decide(harness, run_id, approve(approval))
    harness.change_agent(tool_policies=denies())
    await harness.worker.execute(run_id)
    assert sent(harness) == ["send"]
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "outcome_unknown", "not that it was never sent"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("E3")
async def test_siblings_that_may_be_repeated_are_sent_again_before_the_run_waits(mocker: MockerFixture) -> None:
    harness = a_harness(sends("hello", beside=(READ,)), says())
    harness.change_agent(
        tool_policies=ToolPolicies(rules=((SEND, AGAIN), (READ, ToolRule(idempotent=True)))),
    )
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.connections.calls.clear()
    await harness.worker.execute(run_id)
    assert sent(harness) == ["read"]
    assert [use.name for use in harness.run(run_id).pending] == [SEND]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C1", "C3", "E3")
@pytest.mark.parametrize("changed", ["agent", "organization"])
async def test_a_repeatable_call_that_needs_an_approval_by_now_is_not_sent_again_without_one(
    mocker: MockerFixture, changed: str
) -> None:
    harness = a_harness(asks(READ), says(), policies=policies(ToolRule(idempotent=True), READ))
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    asking = policies(ToolRule(idempotent=True, decision=Verdict.REQUIRE_APPROVAL), READ)
    harness.change_agent(tool_policies=asking) if changed == "agent" else harness.change_organization(
        tool_policies=asking
    )
    await harness.worker.execute(run_id)
    [use] = harness.run(run_id).pending
    assert use.approval is not None
    assert (use.approval.outcome_unknown, sent(harness)) == (True, ["read"])
    await decide(harness, run_id, approve(approvals(harness, run_id)[0]))
    await crash_after(harness, mocker, 1)
    await harness.worker.execute(run_id)
    assert sent(harness) == ["read"] * 3, (
        "approved, and repeatable: sent again after a further crash without a further word"
    )
    assert harness.results() == ["text"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C1", "E3")
async def test_a_call_that_may_not_be_repeated_any_more_is_not(mocker: MockerFixture) -> None:
    harness = a_harness(asks(READ), says(), policies=policies(ToolRule(idempotent=True), READ))
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.change_organization(tool_policies=policies(ToolRule(idempotent=False), READ))
    await harness.worker.execute(run_id)
    assert sent(harness) == ["read"]
    assert "unknown" in harness.results()[0]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2", "E3")
async def test_a_repeatable_call_that_is_denied_by_now_is_not_sent_again(mocker: MockerFixture) -> None:
    harness = a_harness(asks(READ), says(), policies=policies(ToolRule(idempotent=True), READ))
    await harness.warm_up()
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    harness.change_agent(tool_policies=denies(READ))
    await harness.worker.execute(run_id)
    assert sent(harness) == ["read"]
    assert "unknown" in harness.results()[0]
    assert_consistent(harness, run_id)


async def sign(invocation: Invocation) -> McpReply:
    """Wants to know who signs."""
    if invocation.input_responses is not None:
        return text_reply("signed")
    question = Elicitation(request_id="who", message="Who signs?", schema={"type": "object"})
    return McpReply(
        is_error=False, content=(), input_required=McpInputRequired(questions=(question,), request_state="page 7")
    )


@pytest.mark.requirement("C1", "C3", "E3")
async def test_an_answered_call_that_needs_an_approval_by_now_waits_for_it_and_goes_again_with_the_answer() -> None:
    harness = RunHarness(
        [asks("mcp__s__sign"), says()], servers={"s": InMemoryMcpServer(tools={"sign": InMemoryTool(answer=sign)})}
    )
    harness.change_server("s", elicitation=ElicitationPolicy.ASK)
    run_id = await harness.play()
    [use] = harness.run(run_id).pending
    await harness.resume(run_id, {use.id: {"action": "accept", "content": {}}})
    harness.change_agent(tool_policies=asks_first(pattern="mcp__s__sign"))
    await harness.worker.execute(run_id)
    [approval] = approvals(harness, run_id)
    assert sent(harness) == ["sign"]
    await decide(harness, run_id, approve(approval))
    await harness.worker.execute(run_id)
    assert (sent(harness), harness.results()) == (["sign"] * 2, ["signed"])
    assert_consistent(harness, run_id)
