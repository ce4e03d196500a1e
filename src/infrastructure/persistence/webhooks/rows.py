"""Webhook deliveries to rows and back, and storing deliveries for a run's step."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, TypeAlias

from sqlalchemy import Connection, Select, bindparam, select

from application.webhooks.announcing import Announcement, announced, pushed
from domain.ids import RunId
from domain.runs.events import NewEvent
from domain.runs.run import Run
from domain.webhooks.delivery import OPEN_STATES, WebhookDelivery, WebhookEvent
from infrastructure.persistence.columns.fields import row_fields
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.engine.prepared import Prepared, prepared_insert
from infrastructure.persistence.tables import push_config, webhook_delivery

_READ = frozenset(field.name for field in fields(WebhookDelivery))
select_deliveries: Select[Any] = select(*(column for column in webhook_delivery.c if column.name in _READ))
"""Without bodies, which may be long."""
# Literal in the statement, so that the partial index over open rows is used.
is_open = webhook_delivery.c.state.in_(
    bindparam("open_states", [state.value for state in OPEN_STATES], expanding=True, literal_execute=True)
)
_KNOWN = {event.value: event for event in WebhookEvent if event is not WebhookEvent.OTHER}
# Others are left to processes of the version that stored them.
is_known = webhook_delivery.c.event.in_(bindparam("known_events", sorted(_KNOWN), expanding=True, literal_execute=True))

_delivery = row_fields(
    WebhookDelivery,
    codecs={WebhookEvent: (attrgetter("value"), lambda stored: _KNOWN.get(stored, WebhookEvent.OTHER))},
)
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
PushReceivers: TypeAlias = list[tuple[str, str]]
"""The id of each push config of a run, with its receiver."""
_push_configs = Prepared(
    select(push_config.c.id, push_config.c.receiver)
    .where(push_config.c.run_id == bindparam("of_run"))
    .order_by(push_config.c.id)
)


def ask_push_receivers(connection: Connection, run_id: RunId) -> Callable[[], PushReceivers]:
    """The push configs of a run, to be read in the next stage."""
    found = _push_configs.ask(connection, {"of_run": run_id})
    return lambda: [(row.id, row.receiver) for row in found.typed()]


def add_announcements(
    connection: Connection, run: Run, events: Sequence[NewEvent], *, last_seq: int, pushes: PushReceivers
) -> bool:
    """Store a delivery of each event that the run's webhook and its push configs are sent; `run` is
    the state after them. Whether there was any."""
    announcements = announced(run, events, last_seq=last_seq)
    announcements += pushed(run, events, last_seq=last_seq, configs=pushes)
    add_deliveries(connection, announcements)
    return bool(announcements)


def add_deliveries(connection: Connection, announcements: Sequence[Announcement]) -> None:
    """Store new deliveries."""
    if announcements:
        _insert.run(
            connection,
            *[
                {
                    **_delivery.write(new.delivery),
                    "workflow_run_id": None,
                    "server_id": None,
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
