"""Approvals and timers to rows and back, and how a step of a run begins and ends them."""

from datetime import datetime
from typing import cast

from sqlalchemy import Connection, bindparam, delete, select, update

from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState
from domain.approvals.timer import Timer, TimerKind
from domain.ids import (
    AgentId,
    ApiKeyId,
    ApprovalId,
    GatewaySessionId,
    McpServerId,
    OrganizationId,
    RunId,
    TimerId,
    ToolCallId,
    derived_id,
)
from domain.json_value import JsonObject
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.tables import approval, timer

# Ids are derived: what is there already is the same.
_insert = upsert(approval).on_conflict_do_nothing(index_elements=["id"])
_insert_timer = upsert(timer).on_conflict_do_nothing(index_elements=["id"])
_end = (
    update(approval)
    .where(approval.c.id == bindparam("approval_id"), approval.c.state == ApprovalState.PENDING.value)
    .values(
        state=bindparam("new_state"),
        decided_at=bindparam("new_decided_at"),
        decided_by=bindparam("new_decided_by"),
        reason=bindparam("new_reason"),
        edited_arguments=bindparam("new_edited_arguments"),
    )
)
_stop_timer = delete(timer).where(timer.c.subject_id == bindparam("about"))
_cancel = (
    update(approval)
    .where(approval.c.gateway_session_id == bindparam("of_session"), approval.c.state == ApprovalState.PENDING.value)
    .values(state=ApprovalState.CANCELLED.value, decided_at=bindparam("moment"), decided_by="system")
)
_stop_timers_of_session = delete(timer).where(
    timer.c.subject_id.in_(select(approval.c.id).where(approval.c.gateway_session_id == bindparam("of_session")))
)


def add_approvals(connection: Connection, approvals: tuple[Approval, ...]) -> None:
    """Store new approvals, each with the timer that ends it."""
    if approvals:
        connection.execute(_insert, [_row(new) for new in approvals])
        connection.execute(_insert_timer, [_timer_row(expiry_timer(new)) for new in approvals])


def end_approvals(connection: Connection, outcomes: tuple[ApprovalOutcome, ...]) -> None:
    """End those that are pending; their timers go."""
    if not outcomes:
        return
    connection.execute(_end, [_ending(outcome) for outcome in outcomes])
    connection.execute(_stop_timer, [{"about": outcome.approval_id} for outcome in outcomes])


def end_approval(connection: Connection, outcome: ApprovalOutcome) -> bool:
    """The same of one; False if it has ended before."""
    is_ended = connection.execute(_end, _ending(outcome)).rowcount == 1
    connection.execute(_stop_timer, {"about": outcome.approval_id})
    return is_ended


def cancel_approvals(connection: Connection, session_id: GatewaySessionId, *, at: datetime) -> None:
    """End what a gateway session waits for."""
    connection.execute(_cancel, {"of_session": session_id, "moment": at})
    connection.execute(_stop_timers_of_session, {"of_session": session_id})


def expiry_timer(of: Approval) -> Timer:
    """The timer that ends an approval."""
    return Timer(
        id=TimerId(derived_id("tmr", of.id)),
        organization_id=of.organization_id,
        kind=TimerKind.APPROVAL_EXPIRY,
        subject_id=of.id,
        due_at=of.expires_at,
    )


def approval_of(row: AnyRow) -> Approval:
    """From a row of `approval`."""
    edited = cast("JsonObject | None", row.edited_arguments)
    return Approval(
        id=ApprovalId(row.id),
        organization_id=OrganizationId(row.organization_id),
        run_id=None if row.run_id is None else RunId(row.run_id),
        gateway_session_id=None if row.gateway_session_id is None else GatewaySessionId(row.gateway_session_id),
        tool_call_id=ToolCallId(row.tool_call_id),
        tool=row.tool,
        server_id=None if row.server_id is None else McpServerId(row.server_id),
        arguments=cast(JsonObject, row.arguments),
        digest=row.digest,
        agent_id=AgentId(row.agent_id),
        agent_version=row.agent_version,
        requested_by=None if row.requested_by is None else ApiKeyId(row.requested_by),
        allow_self_approval=row.allow_self_approval,
        cause=row.cause,
        state=ApprovalState(row.state),
        created_at=row.created_at,
        expires_at=row.expires_at,
        decided_at=row.decided_at,
        decided_by=row.decided_by,
        reason=row.reason,
        edited_arguments=edited,
    )


def timer_of(row: AnyRow) -> Timer:
    """From a row of `timer`."""
    return Timer(
        id=TimerId(row.id),
        organization_id=OrganizationId(row.organization_id),
        kind=TimerKind(row.kind),
        subject_id=row.subject_id,
        due_at=row.due_at,
    )


def _ending(outcome: ApprovalOutcome) -> dict[str, object]:
    return {
        "approval_id": outcome.approval_id,
        "new_state": outcome.state.value,
        "new_decided_at": outcome.at,
        "new_decided_by": outcome.by,
        "new_reason": outcome.reason,
        "new_edited_arguments": outcome.edited_arguments,
    }


def _row(new: Approval) -> dict[str, object]:
    return {
        "id": new.id,
        "organization_id": new.organization_id,
        "run_id": new.run_id,
        "gateway_session_id": new.gateway_session_id,
        "tool_call_id": new.tool_call_id,
        "tool": new.tool,
        "server_id": new.server_id,
        "arguments": new.arguments,
        "digest": new.digest,
        "agent_id": new.agent_id,
        "agent_version": new.agent_version,
        "requested_by": new.requested_by,
        "allow_self_approval": new.allow_self_approval,
        "cause": new.cause,
        "state": new.state.value,
        "created_at": new.created_at,
        "expires_at": new.expires_at,
        "decided_at": new.decided_at,
        "decided_by": new.decided_by,
        "reason": new.reason,
        "edited_arguments": new.edited_arguments,
    }


def _timer_row(new: Timer) -> dict[str, object]:
    return {
        "id": new.id,
        "organization_id": new.organization_id,
        "kind": new.kind.value,
        "subject_id": new.subject_id,
        "due_at": new.due_at,
    }
