"""Approvals and timers to rows and back, and how a step of a run begins and ends them."""

from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, select, update

from application.webhooks.notices import of_approvals
from domain.approvals.approval import Approval, ApprovalOutcome, ApprovalState, Consent
from domain.approvals.timer import Timer, TimerKind
from domain.ids import GatewaySessionId, TimerId, derived_id
from infrastructure.persistence.columns.fields import json_codec, row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.tables import approval, timer
from infrastructure.persistence.webhooks.notice_rows import add_notices

# Ids are derived: an existing row is the same approval.
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
_approval = row_fields(Approval, codecs={Consent: json_codec(Consent)})
_timer = row_fields(Timer)


def add_approvals(connection: Connection, approvals: tuple[Approval, ...]) -> None:
    """Store new approvals, each with the timer that ends it, and the notice to the organization's
    inbox."""
    if approvals:
        connection.execute(_insert, [_approval.write(new) for new in approvals])
        connection.execute(_insert_timer, [_timer.write(expiry_timer(new)) for new in approvals])
        add_notices(connection, of_approvals(approvals))


def end_approvals(connection: Connection, outcomes: tuple[ApprovalOutcome, ...]) -> None:
    """End the pending ones and remove their timers."""
    if not outcomes:
        return
    connection.execute(_end, [_ending(outcome) for outcome in outcomes])
    connection.execute(_stop_timer, [{"about": outcome.approval_id} for outcome in outcomes])


def end_approval(connection: Connection, outcome: ApprovalOutcome) -> bool:
    """End one approval. False if it has ended before."""
    is_ended = connection.execute(_end, _ending(outcome)).rowcount == 1
    connection.execute(_stop_timer, {"about": outcome.approval_id})
    return is_ended


def cancel_approvals(connection: Connection, session_id: GatewaySessionId, *, at: datetime) -> None:
    """Cancel the pending approvals of a gateway session."""
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


def consents_of(of: Approval) -> object:
    """As stored."""
    return _approval.write(of)["consents"]


def approval_of(row: AnyRow) -> Approval:
    return _approval.of_row(row)


def timer_of(row: AnyRow) -> Timer:
    return _timer.of_row(row)


def _ending(outcome: ApprovalOutcome) -> dict[str, object]:
    return {
        "approval_id": outcome.approval_id,
        "new_state": outcome.state.value,
        "new_decided_at": outcome.at,
        "new_decided_by": outcome.by,
        "new_reason": outcome.reason,
        "new_edited_arguments": outcome.edited_arguments,
    }
