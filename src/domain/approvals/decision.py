"""A person's decision on an approval: the rules that runs and gateway sessions share."""

from dataclasses import dataclass
from datetime import datetime

from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, Consent
from domain.approvals.refusals import (
    approval_decided,
    approval_expired,
    approved_before,
    not_an_approver,
    person_needed,
    refuse_unless_pending,
    self_approval_forbidden,
)
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, Violation, invalid
from domain.ids import (
    ApprovalId,
    AuditEventId,
    GatewaySessionId,
    McpServerId,
    OrganizationId,
    RunId,
    ToolCallId,
    derived_id,
)
from domain.json_value import JsonObject, canonical_digest
from domain.policy.acting_person import ActingPerson
from domain.policy.layers import Source

_ACTIONS = {
    ApprovalState.APPROVED: AuditAction.TOOL_APPROVED,
    ApprovalState.DENIED: AuditAction.TOOL_DENIED,
    ApprovalState.EXPIRED: AuditAction.TOOL_DENIED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDecision:
    """A person's decision on a pending call. `arguments` replace the model's. `approval_id` names
    the approval of a call that had more than one."""

    tool_call_id: ToolCallId
    approve: bool
    arguments: JsonObject | None = None
    reason: str | None = None
    approval_id: ApprovalId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decider:
    """Who decides, and who started the run or opened the gateway session. `is_admitted`: the person
    of a key may sign in now; read only where several people must approve."""

    person: ActingPerson
    starter: ActingPerson | None
    is_admitted: bool = True

    def refusal(self, approval: Approval, *, approves: bool = True) -> ServiceError | None:
        """Why the person may not decide; None if they may.

        - Where policy names approvers, only they decide, whatever the role of others is.
        - The person who started the run does not approve where policy requires four eyes, by no key
          of theirs either. They may deny.
        - Where several people must approve, each approves once, and a key approves for the person
          who created it, while that person is admitted.
        """
        if not all(each.include(self.person) for each in approval.approvers or ()):
            return not_an_approver(approval.id)
        is_own = self.starter is not None and self.person.is_same_person(self.starter)
        if approves and is_own and not approval.allow_self_approval:
            return self_approval_forbidden(approval.id)
        if approves and approval.needed > 1:
            return self._refusal_of_several(approval)
        return None

    def _refusal_of_several(self, approval: Approval) -> ServiceError | None:
        if self.person.person_id is None or not self.is_admitted:
            return person_needed(approval.id)
        if approval.has_consent_of(self.person.person_id) and not approval.has_enough:
            return approved_before(approval.id)
        return None


def refuse_decision(by: Decider, approval: Approval, decision: CallDecision, *, at: datetime, path: str) -> None:
    """Raise unless `by` may take the decision. `require_decider` has checked the role.

    - The approval is pending, not expired, and the one that the decision names.
    - `Decider.refusal` says who decides.
    - Only the arguments of an approved call are edited; `path` is their place in the request.
    """
    if decision.approval_id not in (None, approval.id):
        raise approval_decided(approval.id)
    refuse_unless_pending(approval)
    if at >= approval.expires_at:
        raise approval_expired(approval.id)
    refusal = by.refusal(approval, approves=decision.approve)
    if refusal is not None:
        raise refusal
    if decision.arguments is not None and approval.needed > 1:
        shared = Violation(path=path, message="cannot be changed where several people approve")
        raise invalid("arguments_invalid", "All who approve this call approve the same arguments.", shared)
    if decision.arguments is not None and not decision.approve:
        belong = Violation(path=path, message="belong to an approved call")
        raise invalid("arguments_invalid", "The arguments of a denied call cannot be changed.", belong)


def consent_audit(approval: Approval, consent: Consent) -> AuditEvent:
    """The audit entry of one of several approvals. The last one is followed by that of the
    decision."""
    details: JsonObject = {
        "approval_id": approval.id,
        "approvals": len(approval.consents or ()),
        "needed": approval.needed,
    }
    if approval.gateway_session_id is not None:
        details["gateway_session_id"] = approval.gateway_session_id
    return AuditEvent(
        id=AuditEventId(derived_id("aud", approval.id, "consent", consent.person)),
        organization_id=approval.organization_id,
        action=AuditAction.TOOL_APPROVAL_GIVEN,
        actor=consent.by,
        resource=approval.tool_call_id,
        at=consent.at,
        run_id=approval.run_id,
        tool=approval.tool,
        server_id=approval.server_id,
        arguments_digest=canonical_digest(approval.arguments),
        details=details,
    )


def approval_cause(source: Source) -> str:
    """The rule that requires an approval, as a sentence for people."""
    rule = "" if source.pattern is None else f" for {source.pattern}"
    return f"The policy of the {source.layer.value}{rule} requires an approval."


def decision_audit(
    outcome: ApprovalOutcome,
    *,
    organization_id: OrganizationId,
    tool_call_id: ToolCallId,
    tool: str,
    server_id: McpServerId | None,
    arguments: JsonObject,
    run_id: RunId | None = None,
    gateway_session_id: GatewaySessionId | None = None,
) -> tuple[AuditEvent, ...]:
    """The audit entry of a decision or an expiry. Stale and cancelled approvals have none."""
    action = _ACTIONS.get(outcome.state)
    if action is None:
        return ()
    details: JsonObject = {"approval_id": outcome.approval_id, "edited": outcome.edited_arguments is not None}
    if gateway_session_id is not None:
        details["gateway_session_id"] = gateway_session_id
    if outcome.reason is not None:
        details["reason"] = outcome.reason
    if outcome.state is ApprovalState.EXPIRED:
        details["expired"] = True
    return (
        AuditEvent(
            id=AuditEventId(derived_id("aud", outcome.approval_id, outcome.state.value)),
            organization_id=organization_id,
            action=action,
            actor=outcome.by,
            resource=tool_call_id,
            at=outcome.at,
            run_id=run_id,
            tool=tool,
            server_id=server_id,
            arguments_digest=canonical_digest(
                arguments if outcome.edited_arguments is None else outcome.edited_arguments
            ),
            details=details,
        ),
    )
