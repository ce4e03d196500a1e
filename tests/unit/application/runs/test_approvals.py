"""Calls that need approval: the run waits, and the approved call is the one that is sent."""

from dataclasses import replace

import pytest

from application.runs.resume_run import ClientToolResult
from domain.approvals.approval import Approval, ApprovalState, approval_digest
from domain.approvals.decision import CallDecision
from domain.errors import ErrorKind, ServiceError
from domain.identity.role import Role
from domain.ids import RunId, ToolCallId
from domain.json_value import JsonObject
from domain.mcp.server_pin import ServerPin
from domain.policy.canary import CanaryToken
from domain.policy.rules import OnBlock
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCallState
from domain.runs.run import RunStatus
from domain.tools.result import ToolOutcome
from tests.builders import KEY
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.approving import (
    READ,
    SEND,
    a_harness,
    approvals,
    asks_first,
    decide,
    denies,
    sends,
    states,
)
from tests.unit.application.runs.doubles import asks, says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

OPERATOR = a_principal(Role.OPERATOR)


def approve(approval: Approval, **more: object) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=True, **more)  # type: ignore[arg-type]  # fields by name


def deny(approval: Approval, **more: object) -> CallDecision:
    return CallDecision(tool_call_id=approval.tool_call_id, approve=False, **more)  # type: ignore[arg-type]  # fields by name


async def a_waiting_run(harness: RunHarness) -> tuple[RunId, Approval]:
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    return run_id, approvals(harness, run_id)[0]


async def refusal_of(harness: RunHarness, run_id: RunId, *decisions: CallDecision) -> ServiceError:
    """The refusal, which must change nothing of the run."""
    before = (harness.run(run_id), harness.ledger(run_id), approvals(harness, run_id), harness.audit(run_id))
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, *decisions, principal=OPERATOR)
    assert (harness.run(run_id), harness.ledger(run_id), approvals(harness, run_id), harness.audit(run_id)) == before
    return refused.value


@pytest.mark.requirement("C3")
async def test_a_run_waits_with_what_is_to_be_approved_and_nothing_was_sent() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    [waiting] = harness.of_type(run_id, RunEventType.RUN_REQUIRES_ACTION)
    assert waiting["pending"] == [
        {
            "type": "tool_use",
            "id": approval.tool_call_id,
            "name": SEND,
            "params": {"text": "hello"},
            "approval_id": approval.id,
            "expires_at": "2026-01-02T12:00:00.000000Z",
            "reason": f"The policy of the agent for {SEND} requires an approval.",
        }
    ]
    assert approval.id.startswith("apr_")
    assert (approval.state, approval.tool, approval.arguments) == (ApprovalState.PENDING, SEND, {"text": "hello"})
    assert approval.requested_by == KEY
    assert approval.server == ServerPin.of(harness.server("s"))
    assert approval.digest == approval_digest(SEND, {"text": "hello"}, harness.agent.version, approval.server)
    assert harness.ledger(run_id)[0].state is ToolCallState.AWAITING_APPROVAL
    assert harness.connections.calls == []
    assert "tool.started" not in harness.types(run_id)
    assert [scope.run_id for scope in harness.connections.released] == [run_id], "a waiting run holds nothing"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_an_approved_call_is_made_by_another_worker_and_the_model_gets_its_result() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    resumed = await decide(harness, run_id, approve(approval, reason="Fine."), principal=OPERATOR)
    assert (resumed.status, resumed.pending, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, (), run_id)
    await harness.new_worker().execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.results() == ["sent hello"]
    [decided] = approvals(harness, run_id)
    assert (decided.state, decided.decided_by, decided.reason) == (ApprovalState.APPROVED, OPERATOR.key_id, "Fine.")
    [audited] = [entry for entry in harness.audit(run_id) if entry.action.value == "tool.approved"]
    assert (audited.actor, audited.tool) == (OPERATOR.key_id, SEND)
    kinds = harness.types(run_id)
    assert kinds.index("run.resumed") < kinds.index("tool.started") < kinds.index("tool.executed")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_a_denied_call_is_blocked_and_the_model_is_told_why() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, deny(approval, reason="Not to\x00 customers."), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.connections.calls == []
    assert "Not to" in harness.results()[0]
    assert "customers." in harness.results()[0]
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert (entry.result.outcome, entry.result.error_code) == (ToolOutcome.BLOCKED, "approval_denied")
    [blocked] = harness.of_type(run_id, RunEventType.TOOL_BLOCKED)
    assert blocked["reason"] == "approval_denied"
    denied = [entry for entry in harness.audit(run_id) if entry.action.value == "tool.denied"]
    assert [entry.actor for entry in denied] == [OPERATOR.key_id]
    assert states(harness, run_id) == [ApprovalState.DENIED]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_siblings_that_need_no_approval_run_before_the_wait_and_displayed_ones_are_waited_for_as_well() -> None:
    harness = a_harness(sends("a", beside=(READ, "send_email")), says())
    run_id, approval = await a_waiting_run(harness)
    assert harness.server_calls() == ["read"]
    states = [entry.state.value for entry in harness.ledger(run_id)]
    assert states == ["awaiting_approval", "settled", "awaiting_client"]
    email = harness.ledger(run_id)[2].id
    assert [use.id for use in harness.run(run_id).pending] == [approval.tool_call_id, email]
    waiting = await decide(harness, run_id, approve(approval), principal=OPERATOR)
    assert [use.id for use in waiting.pending] == [email]
    assert (await harness.resume(run_id, {email: "shown"})).status is RunStatus.QUEUED
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent a", "text", "shown"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_several_calls_are_settled_in_one_go_or_none_of_them() -> None:
    harness = a_harness(sends("a", "b", beside=("send_email",)), says())
    run_id, first = await a_waiting_run(harness)
    second = approvals(harness, run_id)[1]
    unknown = CallDecision(tool_call_id=ToolCallId("call_unknown"), approve=True)
    refused = await refusal_of(harness, run_id, approve(first), unknown)
    assert (refused.code, refused.violations[0].path) == ("tool_call_not_pending", "approvals.1.tool_call_id")
    assert (await refusal_of(harness, run_id, approve(first), deny(first))).kind is ErrorKind.INVALID
    shown = ClientToolResult(tool_call_id=harness.ledger(run_id)[2].id, result="shown")
    resumed = await decide(harness, run_id, approve(first), deny(second), results=(shown,), principal=OPERATOR)
    assert resumed.status is RunStatus.QUEUED
    await harness.worker.execute(run_id)
    assert harness.results()[0] == "sent a"
    assert "denied" in harness.results()[1]
    assert harness.results()[2] == "shown"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_an_approval_is_used_once() -> None:
    harness = a_harness(sends("a", "b"), says())
    run_id, first = await a_waiting_run(harness)
    await decide(harness, run_id, deny(first), principal=OPERATOR)
    for again in (approve(first), deny(first)):
        assert (await refusal_of(harness, run_id, again)).code == "approval_decided"
    await decide(harness, run_id, approve(approvals(harness, run_id)[1]), principal=OPERATOR)
    assert (await refusal_of(harness, run_id, approve(first))).code == "approval_decided", "resumed, too"
    await harness.worker.execute(run_id)
    assert (await refusal_of(harness, run_id, approve(first))).code == "approval_decided"
    assert [recorded.call.arguments for recorded in harness.connections.calls] == [{"text": "b"}]


@pytest.mark.requirement("C3")
async def test_an_approval_of_another_run_decides_nothing_here() -> None:
    harness = a_harness(sends("a"), sends("b"), says())
    run_id, _ = await a_waiting_run(harness)
    other = await harness.start(thread_id=None)
    await harness.worker.execute(other)
    refused = await refusal_of(harness, run_id, approve(approvals(harness, other)[0]))
    assert refused.code == "tool_call_not_pending"
    assert states(harness, other) == [ApprovalState.PENDING]


@pytest.mark.requirement("C3", "C6")
async def test_deciding_needs_an_operator_also_of_ones_own_run() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, approve(approval), principal=a_principal(Role.RUNNER))
    assert refused.value.kind is ErrorKind.FORBIDDEN
    assert states(harness, run_id) == [ApprovalState.PENDING]


@pytest.mark.requirement("C3")
async def test_the_requester_does_not_approve_where_policy_wants_somebody_else() -> None:
    harness = a_harness(policies=asks_first(allow_self=False))
    run_id, approval = await a_waiting_run(harness)
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, approve(approval))
    assert (refused.value.code, refused.value.kind) == ("self_approval_forbidden", ErrorKind.FORBIDDEN)
    assert states(harness, run_id) == [ApprovalState.PENDING]
    assert (await decide(harness, run_id, approve(approval), principal=OPERATOR)).status is RunStatus.QUEUED


@pytest.mark.requirement("C3")
async def test_edited_arguments_are_what_is_sent_and_audited() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, approve(approval, arguments={"text": "better"}), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent better"]
    [decided] = approvals(harness, run_id)
    assert (decided.arguments, decided.edited_arguments) == ({"text": "hello"}, {"text": "better"})
    [started] = harness.of_type(run_id, RunEventType.TOOL_STARTED)
    assert started["params"] == {"text": "better"}
    digests = {entry.action.value: entry.arguments_digest for entry in harness.audit(run_id)}
    assert digests["tool.approved"] == digests["tool.executed"]


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [({"text": 7}, "arguments_invalid"), ({}, "arguments_invalid"), ({"text": "x", "to": "all"}, "arguments_denied")],
)
async def test_edited_arguments_stay_within_schema_and_policy(arguments: JsonObject, code: str) -> None:
    harness = a_harness()
    [(pattern, rule)] = harness.agent.config.tool_policies.rules
    policies = replace(harness.agent.config.tool_policies, rules=((pattern, replace(rule, denied_params=("to",))),))
    harness.change_agent(tool_policies=policies)
    run_id, approval = await a_waiting_run(harness)
    refused = await refusal_of(harness, run_id, approve(approval, arguments=arguments))
    assert (refused.code, refused.kind) == (code, ErrorKind.INVALID)
    assert [violation.path for violation in refused.violations] == ["approvals.0.arguments"]


@pytest.mark.requirement("C4")
async def test_edited_arguments_hold_no_canary_token() -> None:
    harness = a_harness()
    harness.change_agent(canary_tokens=(CanaryToken(id="one", secret="CANARY-0123456789"),))
    run_id, approval = await a_waiting_run(harness)
    hidden = b"CANARY-0123456789".hex()
    refused = await refusal_of(harness, run_id, approve(approval, arguments={"text": f"say {hidden}"}))
    assert refused.code == "arguments_denied"
    assert hidden not in str(refused.violations)
    await decide(harness, run_id, approve(approval, arguments={"text": "harmless"}))
    assert harness.run(run_id).status is RunStatus.QUEUED


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_reason_of_a_denial_is_taken_out() -> None:
    harness = a_harness()
    harness.change_agent(canary_tokens=(CanaryToken(id="one", secret="CANARY-0123456789"),))
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, deny(approval, reason="It would say canary-0123456789."))
    [denied] = [entry for entry in harness.audit(run_id) if entry.action.value == "tool.denied"]
    assert denied.details["reason"] == "It would say [canary:one]."
    assert [stored.reason for stored in approvals(harness, run_id)] == ["It would say [canary:one]."]
    [call] = harness.ledger(run_id)
    assert call.result is not None
    assert "[canary:one]" in call.result.text
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED, "nothing is made of people's words"


async def test_a_denial_takes_no_arguments() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    assert (await refusal_of(harness, run_id, deny(approval, arguments={"text": "x"}))).code == "arguments_invalid"


@pytest.mark.requirement("C3")
async def test_a_changed_agent_makes_the_approval_stale_and_a_new_one_is_asked_for() -> None:
    harness = a_harness(sends("a", "b"), says())
    run_id, first = await a_waiting_run(harness)
    harness.change_agent(instructions="Be careful.")
    with pytest.raises(ServiceError) as refused:
        await decide(harness, run_id, approve(first), principal=OPERATOR)
    assert (refused.value.code, refused.value.kind) == ("approval_stale", ErrorKind.CONFLICT)
    assert (harness.run(run_id).status, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert states(harness, run_id) == [ApprovalState.STALE, ApprovalState.PENDING] * 2
    assert harness.connections.calls == []
    asked = [approval for approval in approvals(harness, run_id) if approval.state is ApprovalState.PENDING]
    assert {approval.agent_version for approval in asked} == {harness.agent.version}
    await decide(harness, run_id, *map(approve, asked), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent a", "sent b"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_a_stale_call_is_made_if_the_changed_agent_may_and_blocked_if_it_may_not() -> None:
    for policies, outcome in ((asks_first(pattern="other"), "sent hello"), (denies(), "blocked by policy")):
        harness = a_harness()
        run_id, approval = await a_waiting_run(harness)
        harness.change_agent(tool_policies=policies)
        with pytest.raises(ServiceError):
            await decide(harness, run_id, deny(approval), principal=OPERATOR)
        await harness.worker.execute(run_id)
        assert harness.run(run_id).status is RunStatus.COMPLETED
        assert outcome in harness.results()[0]
        assert states(harness, run_id) == [ApprovalState.STALE]
        assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_an_agent_that_changes_between_approval_and_execution_has_the_call_decided_anew() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, approve(approval), principal=OPERATOR)
    harness.change_agent(instructions="Be careful.")
    await harness.worker.execute(run_id)
    assert harness.connections.calls == []
    assert states(harness, run_id) == [ApprovalState.APPROVED, ApprovalState.PENDING]
    await decide(harness, run_id, approve(approvals(harness, run_id)[1]), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent hello"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C2", "C3")
async def test_a_call_that_is_decided_anew_halts_its_run_where_policy_says_so() -> None:
    harness = a_harness(sends("a", beside=("send_email",)), says())
    run_id, approval = await a_waiting_run(harness)
    harness.change_agent(tool_policies=denies(on_block=OnBlock.HALT))
    with pytest.raises(ServiceError):
        await decide(harness, run_id, approve(approval), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.HALTED
    assert harness.connections.calls == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_what_is_displayed_waits_for_its_approval_and_then_for_its_client() -> None:
    harness = a_harness(sends(beside=("send_email",)), says(), policies=asks_first(pattern="send_email"))
    run_id, approval = await a_waiting_run(harness)
    with pytest.raises(ServiceError) as refused:
        await harness.resume(run_id, {approval.tool_call_id: "sent"})
    assert refused.value.code == "tool_call_not_pending", "a client's result is no approval"
    waiting = await decide(harness, run_id, approve(approval), principal=OPERATOR)
    assert waiting.status is RunStatus.REQUIRES_ACTION
    assert [use.approval for use in waiting.pending] == [None]
    await harness.resume(run_id, {approval.tool_call_id: "sent"})
    await harness.worker.execute(run_id)
    assert harness.results() == ["sent"]


@pytest.mark.requirement("C3", "D5")
async def test_the_next_message_does_not_approve_what_waits() -> None:
    harness = a_harness(sends(beside=("send_email",)), says(), policies=asks_first(pattern="send_email"))
    run_id, _ = await a_waiting_run(harness)
    await harness.start("And now?")
    assert harness.run(run_id).status is RunStatus.REQUIRES_ACTION
    assert states(harness, run_id) == [ApprovalState.PENDING]


@pytest.mark.requirement("A12", "C3")
async def test_cancelling_a_run_closes_its_approvals() -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    await harness.cancel(run_id)
    assert states(harness, run_id) == [ApprovalState.CANCELLED]
    assert (await refusal_of(harness, run_id, approve(approval))).code == "approval_cancelled"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3", "E3")
@pytest.mark.parametrize("sent", [False, True])
async def test_a_crash_around_an_approved_call_never_makes_it_twice(sent: bool) -> None:
    harness = a_harness()
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, approve(approval), principal=OPERATOR)
    if sent:
        await harness.leases.claim(run_id, harness.worker.active_runs.worker_id, lease_s=1, at=harness.clock.now())
        [entry] = harness.state.runs[run_id].calls.values()
        harness.state.runs[run_id].calls[entry.id] = replace(entry, state=ToolCallState.RECORDED)
        await harness.recover()
    await harness.new_worker().execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert ("unknown" in harness.results()[0]) is sent
    assert len(harness.connections.calls) == (0 if sent else 1)
    assert states(harness, run_id) == [ApprovalState.APPROVED]


async def test_an_unapproved_call_counts_as_one_of_its_turn_only() -> None:
    harness = a_harness(sends("a"), asks(READ), says())
    run_id, approval = await a_waiting_run(harness)
    await decide(harness, run_id, approve(approval), principal=OPERATOR)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).usage.tool_calls == 2
