"""Webhook deliveries to rows and back, and storing those that a step of a run announces."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from application.webhooks.announcing import announced
from domain.ids import OrganizationId, RunId, WebhookDeliveryId
from domain.runs.events import NewEvent, RunEventType
from domain.runs.run import Run
from domain.webhooks.delivery import OPEN_STATES, DeliveryState, WebhookDelivery
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import prepared_insert
from infrastructure.persistence.tables import webhook_delivery

select_deliveries: Select[Any] = select(*(column for column in webhook_delivery.c if column.name != "body"))
"""Without bodies, which may be long."""
# Written out, so that the partial index over open ones is taken.
is_open = webhook_delivery.c.state.in_(
    bindparam("open_states", [state.value for state in OPEN_STATES], expanding=True, literal_execute=True)
)

_insert = prepared_insert(webhook_delivery)


def add_announcements(connection: Connection, run: Run, events: Sequence[NewEvent], *, last_seq: int) -> None:
    """Store a delivery of each event that the run's webhook wants; `run` is as it stands after them."""
    announcements = announced(run, events, last_seq=last_seq)
    if announcements:
        _insert.run_many(
            connection,
            [
                {
                    "id": new.delivery.id,
                    "organization_id": run.organization_id,
                    "run_id": run.id,
                    "event": new.delivery.event.value,
                    "receiver": new.delivery.receiver,
                    "created_at": new.delivery.created_at,
                    "body": new.body,
                    **state_row(new.delivery),
                }
                for new in announcements
            ],
        )


def state_row(after: WebhookDelivery) -> dict[str, object]:
    """The columns that an attempt may change."""
    return {
        "state": after.state.value,
        "attempts": after.attempts,
        "retried_after": after.retried_after,
        "last_status": after.last_status,
        "last_error": after.last_error,
        "next_attempt_at": after.next_attempt_at,
        "delivered_at": after.delivered_at,
    }


def delivery_of(row: AnyRow) -> WebhookDelivery:
    """From a row of `select_deliveries`."""
    return WebhookDelivery(
        id=WebhookDeliveryId(row.id),
        organization_id=OrganizationId(row.organization_id),
        run_id=RunId(row.run_id),
        event=RunEventType(row.event),
        receiver=row.receiver,
        created_at=row.created_at,
        state=DeliveryState(row.state),
        attempts=row.attempts,
        retried_after=row.retried_after,
        last_status=row.last_status,
        last_error=row.last_error,
        next_attempt_at=row.next_attempt_at,
        delivered_at=row.delivered_at,
    )
