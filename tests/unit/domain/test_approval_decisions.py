"""A person's decision on an approval: who may take it, until when, and what the audit and the model
learn of it."""

from dataclasses import replace

import pytest

from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.decision import (
    CallDecision,
    Decider,
    approval_cause,
    decision_audit,
    refuse_decision,
)
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.ids import ApiKeyId, ApprovalId, UserId
from domain.json_value import JsonObject, canonical_digest
from domain.policy.acting_person import ActingPerson
from domain.policy.approvers import Approvers
from domain.policy.layers import PolicyLayer, Source
from domain.runs.approvals import denied_result
from domain.tools.result import ToolOutcome
from tests.builders import KEY, after
from tests.gateway_builders import a_gateway_approval
from tests.refusals import refused
from tests.run_builders import a_pinned_approval, a_run_approval

OPERATOR, ANN = ApiKeyId("key_operator"), ApiKeyId("usr_ann")
OF_RUN, OF_SESSION = a_run_approval(), a_gateway_approval()
both = pytest.mark.parametrize("approval", [OF_RUN, OF_SESSION], ids=["run", "gateway session"])


def decide(
    approval: Approval,
    *,
    by: ApiKeyId | ActingPerson = OPERATOR,
    starter: ActingPerson | None = None,
    approve: bool = True,
    arguments: JsonObject | None = None,
    approval_id: ApprovalId | None = None,
    at_s: float = 60.0,
) -> None:
    decision = CallDecision(
        tool_call_id=approval.tool_call_id, approve=approve, arguments=arguments, approval_id=approval_id
    )
    person = by if isinstance(by, ActingPerson) else ActingPerson(id=by)
    if starter is None and approval.requested_by is not None:
        starter = ActingPerson(id=approval.requested_by)
    refuse_decision(Decider(person=person, starter=starter), approval, decision, at=after(at_s), path="arguments")


def audit_of(outcome: ApprovalOutcome, approval: Approval) -> tuple[AuditEvent, ...]:
    return decision_audit(
        outcome,
        organization_id=approval.organization_id,
        tool_call_id=approval.tool_call_id,
        tool=approval.tool,
        server_id=approval.server_id,
        arguments=approval.arguments,
        run_id=approval.run_id,
        gateway_session_id=approval.gateway_session_id,
    )


@both
@pytest.mark.requirement("C3")
@pytest.mark.parametrize("approve", [True, False])
def test_an_operator_decides_a_pending_approval(approval: Approval, approve: bool) -> None:
    decide(approval, approve=approve, approval_id=approval.id)


@both
@pytest.mark.requirement("C3")
@pytest.mark.parametrize("approve", [True, False])
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ApprovalState.APPROVED, "approval_decided"),
        (ApprovalState.DENIED, "approval_decided"),
        (ApprovalState.EXPIRED, "approval_expired"),
        (ApprovalState.STALE, "approval_stale"),
        (ApprovalState.CANCELLED, "approval_cancelled"),
    ],
)
def test_an_approval_that_has_ended_is_not_decided_again(
    approval: Approval, approve: bool, state: ApprovalState, code: str
) -> None:
    with refused(code):
        decide(replace(approval, state=state), approve=approve)


@both
@pytest.mark.requirement("C3")
def test_a_decision_that_names_another_approval_is_refused(approval: Approval) -> None:
    with refused("approval_decided"):
        decide(approval, approval_id=ApprovalId("apr_former"))


@both
@pytest.mark.requirement("C3")
@pytest.mark.parametrize("approve", [True, False])
def test_an_approval_expires_at_the_moment_that_it_names(approval: Approval, approve: bool) -> None:
    lasts_s = (approval.expires_at - after(0)).total_seconds()
    decide(approval, approve=approve, at_s=lasts_s - 1)

    with refused("approval_expired"):
        decide(approval, approve=approve, at_s=lasts_s)


@both
@pytest.mark.requirement("C3")
def test_the_requester_denies_but_does_not_approve_where_policy_requires_another_key(approval: Approval) -> None:
    guarded = replace(approval, requested_by=KEY, allow_self_approval=False)

    with refused("self_approval_forbidden"):
        decide(guarded, by=KEY)

    decide(guarded, by=KEY, approve=False)
    decide(guarded, by=OPERATOR)
    decide(replace(guarded, allow_self_approval=True), by=KEY)


@both
@pytest.mark.requirement("C3", "P2")
def test_a_person_does_not_approve_with_a_key_what_they_started_nor_what_their_key_started(approval: Approval) -> None:
    guarded = replace(approval, allow_self_approval=False)
    ann, anns_key = ActingPerson(id=ANN, person_id=UserId(ANN)), ActingPerson(id=KEY, person_id=UserId(ANN))
    bobs_key = ActingPerson(id=OPERATOR, person_id=UserId("usr_bob"))
    for by, starter in ((ann, anns_key), (anns_key, ann), (anns_key, anns_key)):
        with refused("self_approval_forbidden"):
            decide(guarded, by=by, starter=starter)
        decide(guarded, by=by, starter=starter, approve=False)
    decide(guarded, by=bobs_key, starter=ann)


@both
@pytest.mark.requirement("C3", "P2")
@pytest.mark.parametrize("approve", [True, False])
def test_only_approvers_decide_by_name_or_group(approval: Approval, approve: bool) -> None:
    named = replace(approval, approvers=(Approvers(people=(ANN, "key_deploy"), groups=("Leads",)),))
    decide(named, by=ANN, approve=approve)
    decide(named, by=ApiKeyId("key_deploy"), approve=approve)
    decide(named, by=ActingPerson(id=OPERATOR, groups=frozenset({"Leads", "Everybody"})), approve=approve)
    for outsider in (
        ActingPerson(id=OPERATOR),
        ActingPerson(id=OPERATOR, groups=frozenset({"leads"})),
        ActingPerson(id=KEY, person_id=UserId(ANN)),  # a key is not the person who created it
    ):
        with refused("not_an_approver"):
            decide(named, by=outsider, approve=approve)


@both
@pytest.mark.requirement("C3", "P2")
def test_who_decides_is_an_approver_of_each_layer(approval: Approval) -> None:
    layered = replace(approval, approvers=(Approvers(groups=("Leads",)), Approvers(groups=("Finance",), people=(ANN,))))
    decide(layered, by=ActingPerson(id=OPERATOR, groups=frozenset({"Leads", "Finance"})))
    decide(layered, by=ActingPerson(id=ANN, groups=frozenset({"Leads"})))
    with refused("not_an_approver"):
        decide(layered, by=ActingPerson(id=OPERATOR, groups=frozenset({"Leads"})))


@both
@pytest.mark.requirement("C3")
def test_the_arguments_of_a_denied_call_are_not_edited(approval: Approval) -> None:
    with pytest.raises(ServiceError) as raised:
        decide(approval, approve=False, arguments={"text": "edited"})

    assert (raised.value.code, raised.value.kind) == ("arguments_invalid", ErrorKind.INVALID)
    assert [violation.path for violation in raised.value.violations] == ["arguments"]
    decide(approval, arguments={"text": "edited"})


@both
@pytest.mark.requirement("C3")
def test_an_approval_is_bound_to_tool_arguments_and_version_of_the_agent(approval: Approval) -> None:
    version = approval.agent_version
    assert approval.is_bound_to(version, None)
    assert approval.is_bound_to(version, 7)  # an earlier release requested it, for any server
    assert not approval.is_bound_to(version + 1, None)
    assert not replace(approval, arguments={"text": "other"}).is_bound_to(version, None)
    assert not replace(approval, tool="mcp__files__other").is_bound_to(version, None)


@both
@pytest.mark.requirement("C3")
def test_an_approval_is_bound_to_the_version_of_the_tools_server(approval: Approval) -> None:
    pinned = a_pinned_approval(approval)
    version = approval.agent_version
    assert pinned.is_bound_to(version, 3)
    assert not pinned.is_bound_to(version, 4)
    assert not pinned.is_bound_to(version, None)
    assert not replace(pinned, server=None).is_bound_to(version, 3)


@both
@pytest.mark.requirement("C3", "C5")
@pytest.mark.parametrize(
    ("state", "action"),
    [
        (ApprovalState.APPROVED, AuditAction.TOOL_APPROVED),
        (ApprovalState.DENIED, AuditAction.TOOL_DENIED),
        (ApprovalState.EXPIRED, AuditAction.TOOL_DENIED),
    ],
)
def test_the_audit_entry_of_a_decision_says_who_decided_what_and_why(
    approval: Approval, state: ApprovalState, action: AuditAction
) -> None:
    outcome = ApprovalOutcome(approval_id=approval.id, state=state, at=after(60), by="key_operator", reason="because")

    [entry] = audit_of(outcome, approval)

    assert (entry.action, entry.actor, entry.resource) == (action, "key_operator", approval.tool_call_id)
    assert (entry.tool, entry.server_id, entry.run_id) == (approval.tool, approval.server_id, approval.run_id)
    assert entry.arguments_digest == canonical_digest(approval.arguments)
    assert (entry.details["approval_id"], entry.details["reason"]) == (approval.id, "because")
    assert entry.details.get("gateway_session_id") == approval.gateway_session_id
    assert (entry.details.get("expired"), entry.details["edited"]) == (
        True if state is ApprovalState.EXPIRED else None,
        False,
    )


@pytest.mark.requirement("C3", "C5")
def test_the_audit_entry_has_the_digest_of_edited_arguments() -> None:
    edited: JsonObject = {"text": "edited"}
    outcome = ApprovalOutcome(
        approval_id=OF_RUN.id, state=ApprovalState.APPROVED, at=after(60), by="key_operator", edited_arguments=edited
    )

    [entry] = audit_of(outcome, OF_RUN)

    assert (entry.arguments_digest, entry.details["edited"]) == (canonical_digest(edited), True)
    assert "reason" not in entry.details


@pytest.mark.requirement("C5")
@pytest.mark.parametrize("state", [ApprovalState.STALE, ApprovalState.CANCELLED])
def test_an_approval_that_nobody_decided_has_no_audit_entry(state: ApprovalState) -> None:
    assert audit_of(ApprovalOutcome(approval_id=OF_RUN.id, state=state, at=after(60), by="system"), OF_RUN) == ()


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("state", "outcome_unknown", "outcome", "code"),
    [
        (ApprovalState.DENIED, False, ToolOutcome.BLOCKED, "approval_denied"),
        (ApprovalState.EXPIRED, False, ToolOutcome.BLOCKED, "approval_expired"),
        (ApprovalState.DENIED, True, ToolOutcome.UNKNOWN, None),
        (ApprovalState.EXPIRED, True, ToolOutcome.UNKNOWN, None),
    ],
)
def test_the_model_learns_why_a_call_was_not_executed(
    state: ApprovalState, outcome_unknown: bool, outcome: ToolOutcome, code: str | None
) -> None:
    result = denied_result(state, "Too loud.", outcome_unknown=outcome_unknown)

    assert result.outcome is outcome
    assert code is None or result.error_code == code
    assert ("Too loud." in result.text) is (code != "approval_expired")


@pytest.mark.parametrize(
    ("source", "named"),
    [
        (Source(layer=PolicyLayer.ORGANIZATION), "organization"),
        (Source(layer=PolicyLayer.AGENT, pattern="mcp__files__*"), "mcp__files__*"),
    ],
)
def test_the_cause_names_the_rule_that_requires_the_approval(source: Source, named: str) -> None:
    assert named in approval_cause(source)
