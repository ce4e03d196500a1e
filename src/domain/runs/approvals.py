"""The begin and end of a run's approvals, as parts of its steps."""

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
from domain.ids import ApprovalId, derived_id
from domain.mcp.server_pin import ServerPin
from domain.policy.layers import ApprovalTerms
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.run import Run
from domain.tools.result import ToolResult


def approval_request(
    call: ToolCall,
    *,
    agent_version: int,
    reason: str,
    terms: ApprovalTerms,
    outcome_unknown: bool = False,
    server: ServerPin | None = None,
) -> ApprovalRequest:
    """The approval that `call` requires. The id is derived, so a repeated step requests the same
    approval."""
    return ApprovalRequest(
        id=ApprovalId(derived_id("apr", call.id, agent_version, call.approval.id if call.approval else "")),
        agent_version=agent_version,
        digest=approval_digest(call.name, call.params, agent_version, server),
        reason=reason,
        ttl_s=terms.ttl_s,
        allow_self_approval=terms.allow_self,
        approvers=terms.approvers,
        needed=terms.needed,
        outcome_unknown=outcome_unknown,
        server=server,
    )


def new_approvals(run: Run, calls: Iterable[ToolCall], *, at: datetime) -> tuple[Approval, ...]:
    """The approvals that a run starts to wait for."""
    return tuple(
        Approval(
            id=asked.id,
            organization_id=run.organization_id,
            run_id=run.id,
            tool_call_id=call.id,
            tool=call.name,
            server_id=call.server_id,
            server=asked.server,
            arguments=call.params,
            digest=asked.digest,
            agent_id=run.agent_id,
            agent_version=asked.agent_version,
            requested_by=run.requested_by,
            allow_self_approval=asked.allow_self_approval,
            approvers=asked.approvers or None,
            approvals_needed=asked.needed if asked.needed > 1 else None,
            cause=asked.reason,
            created_at=at,
            expires_at=at + timedelta(seconds=asked.ttl_s),
        )
        for call in calls
        if call.state is ToolCallState.AWAITING_APPROVAL and (asked := call.approval) is not None
    )


def closed_approvals(open_calls: Iterable[ToolCall], *, at: datetime, by: str) -> tuple[ApprovalOutcome, ...]:
    """Outcomes that cancel the approvals of open calls."""
    return tuple(
        ApprovalOutcome(approval_id=call.approval.id, state=ApprovalState.CANCELLED, at=at, by=by)
        for call in open_calls
        if call.state is ToolCallState.AWAITING_APPROVAL and call.approval is not None
    )


def denied_result(state: ApprovalState, reason: str | None, *, outcome_unknown: bool = False) -> ToolResult:
    """The result of a call that was denied or not approved in time. With `outcome_unknown` it may
    have been sent before."""
    said = f" The reason given: {reason}" if reason else ""
    if outcome_unknown:
        why = "was denied" if state is ApprovalState.DENIED else "needs an approval that was not given in time"
        return ToolResult.unknown(
            "The outcome of this call is unknown: the service was interrupted after it may have been sent, and sending it "
            f"again {why}. Check whether it took effect before you repeat it.{said}"
        )
    if state is ApprovalState.EXPIRED:
        return ToolResult.blocked(
            "approval_expired",
            "This call needs an approval, which was not given in time. It was not executed; continue without it.",
        )
    return ToolResult.blocked(
        "approval_denied", f"This call needs an approval, and it was denied. It was not executed.{said}"
    )


def approved_call(call: ToolCall, asked: ApprovalRequest, outcome: ApprovalOutcome) -> ToolCall:
    """The approved call: to be executed, or to be settled by its client."""
    params = call.params if outcome.edited_arguments is None else outcome.edited_arguments
    digest = approval_digest(call.name, params, asked.agent_version, asked.server)
    state = ToolCallState.AWAITING_CLIENT if call.is_displayed else ToolCallState.APPROVED
    # Answers to the call's server belong to the arguments that the call was sent with.
    answers = call.input if outcome.edited_arguments is None else None
    return replace(call, state=state, params=params, input=answers, approval=replace(asked, digest=digest))
