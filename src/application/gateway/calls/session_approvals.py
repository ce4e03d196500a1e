"""How approvals of a gateway session's calls begin and end: the values, without storing them."""

from datetime import datetime, timedelta

from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalRequest, ApprovalState, approval_digest
from domain.audit.event import AuditAction, AuditEvent
from domain.gateway.call import GatewayCall
from domain.gateway.session import GatewaySession
from domain.ids import ApprovalId, AuditEventId, derived_id
from domain.json_value import JsonObject
from domain.policy.decision import Decision
from domain.policy.layers import Source
from domain.runs.audit_trail import arguments_digest

_ACTIONS = {
    ApprovalState.APPROVED: AuditAction.TOOL_APPROVED,
    ApprovalState.DENIED: AuditAction.TOOL_DENIED,
    ApprovalState.EXPIRED: AuditAction.TOOL_DENIED,
}


def new_approval(
    approval_id: ApprovalId,
    session: GatewaySession,
    call: GatewayCall,
    decision: Decision,
    *,
    agent_version: int,
    at: datetime,
) -> Approval:
    """What policy wants for the call; no longer than the session lasts."""
    asked = decision.policy.approval
    return Approval(
        id=approval_id,
        organization_id=session.organization_id,
        gateway_session_id=session.id,
        tool_call_id=call.id,
        tool=call.name,
        server_id=call.server_id,
        arguments=call.params,
        digest=approval_digest(call.name, call.params, agent_version),
        agent_id=session.agent_id,
        agent_version=agent_version,
        requested_by=session.created_by,
        allow_self_approval=asked.allow_self,
        cause=_cause(decision.source),
        created_at=at,
        expires_at=min(at + timedelta(seconds=asked.ttl_s), session.expires_at),
    )


def ended_approval_audit(approval: Approval, outcome: ApprovalOutcome) -> tuple[AuditEvent, ...]:
    """The entry of a decision; that an approval is stale or cancelled was none."""
    action = _ACTIONS.get(outcome.state)
    if action is None:
        return ()
    details: JsonObject = {
        "approval_id": approval.id,
        "gateway_session_id": approval.gateway_session_id,
        "edited": outcome.edited_arguments is not None,
    }
    if outcome.reason is not None:
        details["reason"] = outcome.reason
    if outcome.state is ApprovalState.EXPIRED:
        details["expired"] = True
    params = approval.arguments if outcome.edited_arguments is None else outcome.edited_arguments
    return (
        AuditEvent(
            id=AuditEventId(derived_id("aud", approval.id, outcome.state.value)),
            organization_id=approval.organization_id,
            action=action,
            actor=outcome.by,
            resource=approval.tool_call_id,
            at=outcome.at,
            tool=approval.tool,
            server_id=approval.server_id,
            arguments_digest=arguments_digest(params),
            details=details,
        ),
    )


def request_of(approval: Approval) -> ApprovalRequest:
    """What was asked for, as calls of runs have it."""
    return ApprovalRequest(
        id=approval.id,
        agent_version=approval.agent_version,
        digest=approval.digest,
        reason=approval.cause,
        ttl_s=(approval.expires_at - approval.created_at).total_seconds(),
        allow_self_approval=approval.allow_self_approval,
    )


def outcome_of(approval: Approval) -> ApprovalOutcome:
    """How an approval ended that is not pending."""
    return ApprovalOutcome(
        approval_id=approval.id,
        state=approval.state,
        at=approval.decided_at or approval.expires_at,
        by=approval.decided_by or "system",
        reason=approval.reason,
        edited_arguments=approval.edited_arguments,
    )


def _cause(source: Source) -> str:
    """Who wants the approval, in a sentence for people."""
    rule = "" if source.pattern is None else f" for {source.pattern}"
    return f"The policy of the {source.layer.value}{rule} requires an approval."
