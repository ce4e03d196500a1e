"""Webhook deliveries to rows and back, and storing deliveries for a run's step."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from application.webhooks.announcing import announced
from domain.runs.events import NewEvent
from domain.runs.run import Run
from domain.webhooks.delivery import OPEN_STATES, WebhookDelivery
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import prepared_insert
from infrastructure.persistence.tables import webhook_delivery

select_deliveries: Select[Any] = select(*(column for column in webhook_delivery.c if column.name != "body"))
"""Without bodies, which may be long."""
# Literal in the statement, so that the partial index over open rows is used.
is_open = webhook_delivery.c.state.in_(
    bindparam("open_states", [state.value for state in OPEN_STATES], expanding=True, literal_execute=True)
)

_delivery = row_fields(WebhookDelivery)
_attempts = row_fields(
    WebhookDelivery,
    only=(
        "state",
        "attempts",
        "retried_after",
        "last_status",
        "last_error",
        "next_attempt_at",
        "delivered_at",
    ),
)
_insert = prepared_insert(webhook_delivery)


def add_announcements(connection: Connection, run: Run, events: Sequence[NewEvent], *, last_seq: int) -> None:
    """Store a delivery of each event that the run's webhook subscribes to; `run` is the state after them."""
    announcements = announced(run, events, last_seq=last_seq)
    if announcements:
        _insert.run(
            connection,
            *[
                {
                    **_delivery.write(new.delivery),
                    "body": new.body,
                }
                for new in announcements
            ],
        )


def state_row(after: WebhookDelivery) -> dict[str, object]:
    """The columns that an attempt may change."""
    return _attempts.write(after)


def delivery_of(row: AnyRow) -> WebhookDelivery:
    return _delivery.of_row(row)
