"""How the approvals of a run begin and end, as parts of its steps."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from domain.approvals.approval import (
    Approval,
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalState,
    approval_digest,
)
from domain.audit.event import AuditAction, AuditEvent
from domain.ids import ApprovalId, AuditEventId, derived_id
from domain.json_value import JsonObject
from domain.runs.audit_trail import arguments_digest
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run
from domain.tools.result import ToolResult

_ACTIONS = {
    ApprovalState.APPROVED: AuditAction.TOOL_APPROVED,
    ApprovalState.DENIED: AuditAction.TOOL_DENIED,
    ApprovalState.EXPIRED: AuditAction.TOOL_DENIED,
}


def approval_request(
    call: ToolCall,
    *,
    agent_version: int,
    reason: str,
    ttl_s: float,
    allow_self_approval: bool,
    outcome_unknown: bool = False,
) -> ApprovalRequest:
    """What `call` needs. The id is derived, so that a repeated step asks for the same approval."""
    return ApprovalRequest(
        id=ApprovalId(derived_id("apr", call.id, agent_version, call.approval.id if call.approval else "")),
        agent_version=agent_version,
        digest=approval_digest(call.name, call.params, agent_version),
        reason=reason,
        ttl_s=ttl_s,
        allow_self_approval=allow_self_approval,
        outcome_unknown=outcome_unknown,
    )


def new_approvals(run: Run, calls: Iterable[ToolCall], *, at: datetime) -> tuple[Approval, ...]:
    """The approvals that a run begins to wait for."""
    return tuple(
        Approval(
            id=asked.id,
            organization_id=run.organization_id,
            run_id=run.id,
            tool_call_id=call.id,
            tool=call.name,
            server_id=call.server_id,
            arguments=call.params,
            digest=asked.digest,
            agent_id=run.agent_id,
            agent_version=asked.agent_version,
            requested_by=run.requested_by,
            allow_self_approval=asked.allow_self_approval,
            cause=asked.reason,
            created_at=at,
            expires_at=at + timedelta(seconds=asked.ttl_s),
        )
        for call in calls
        if call.state is ToolCallState.AWAITING_APPROVAL and (asked := call.approval) is not None
    )


def closed_approvals(open_calls: Iterable[ToolCall], *, at: datetime, by: str) -> tuple[ApprovalOutcome, ...]:
    """The ends of approvals that nobody has to give any more."""
    return tuple(
        ApprovalOutcome(approval_id=call.approval.id, state=ApprovalState.CANCELLED, at=at, by=by)
        for call in open_calls
        if call.state is ToolCallState.AWAITING_APPROVAL and call.approval is not None
    )


def approval_audit(run: Run, call: ToolCall, outcome: ApprovalOutcome) -> tuple[AuditEvent, ...]:
    """The entry of a decision; a stale approval was none."""
    action = _ACTIONS.get(outcome.state)
    if action is None:
        return ()
    details: JsonObject = {"approval_id": outcome.approval_id, "edited": outcome.edited_arguments is not None}
    if outcome.reason is not None:
        details["reason"] = outcome.reason
    if outcome.state is ApprovalState.EXPIRED:
        details["expired"] = True
    params = call.params if outcome.edited_arguments is None else outcome.edited_arguments
    return (
        AuditEvent(
            id=AuditEventId(derived_id("aud", outcome.approval_id, outcome.state.value)),
            organization_id=run.organization_id,
            action=action,
            actor=outcome.by,
            resource=call.id,
            at=outcome.at,
            run_id=run.id,
            tool=call.name,
            server_id=call.server_id,
            arguments_digest=arguments_digest(params),
            details=details,
        ),
    )


def denied_result(asked: ApprovalRequest, outcome: ApprovalOutcome) -> ToolResult:
    """What the model is told of a call that was denied, or that nobody approved in time."""
    if asked.outcome_unknown:
        return _not_sent_again(outcome)
    if outcome.state is ApprovalState.EXPIRED:
        return ToolResult.blocked(
            "approval_expired",
            "This call needs an approval, and nobody gave it in time. It was not executed; go on without it.",
        )
    said = f" The reason given: {outcome.reason}" if outcome.reason else ""
    return ToolResult.blocked(
        "approval_denied", f"This call needs an approval, and it was denied. It was not executed.{said}"
    )


def _not_sent_again(outcome: ApprovalOutcome) -> ToolResult:
    why = "was denied" if outcome.state is ApprovalState.DENIED else "needs an approval that nobody gave in time"
    said = f" The reason given: {outcome.reason}" if outcome.reason else ""
    return ToolResult.unknown(
        "The outcome of this call is unknown: the service was interrupted after it may have been sent, and sending it "
        f"again {why}. Check whether it took effect before you repeat it.{said}"
    )


def approved_call(call: ToolCall, asked: ApprovalRequest, outcome: ApprovalOutcome) -> ToolCall:
    """The call as it was approved: to be executed, or, if its client does that, to be settled by the client."""
    params = call.params if outcome.edited_arguments is None else outcome.edited_arguments
    digest = approval_digest(call.name, params, asked.agent_version)
    state = ToolCallState.AWAITING_CLIENT if call.is_displayed else ToolCallState.APPROVED
    # Answers that were given to the call's server belong to the arguments it was sent with.
    answers = call.input if outcome.edited_arguments is None else None
    return replace(call, state=state, params=params, input=answers, approval=replace(asked, digest=digest))
