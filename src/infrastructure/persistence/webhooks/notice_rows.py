"""Stores what waits for people as deliveries to the webhook of the organization's inbox."""

import json
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, cast, literal, select

from application.webhooks.notices import Notice
from domain.webhooks.delivery import DeliveryState
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.tables import organization, webhook_delivery

_GIVEN = ("id", "organization_id", "run_id", "workflow_run_id", "server_id", "event", "body", "created_at")
_FIXED = {"state": DeliveryState.PENDING.value, "attempts": 0, "retried_after": 0}


def _given(name: str) -> ColumnElement[Any]:
    type_ = webhook_delivery.c[name].type
    return cast(bindparam(f"new_{name}", type_=type_), type_)


# Where the organization has no such webhook, nothing is stored: one statement, in the transaction
# of the change.
_insert = (
    upsert(webhook_delivery)
    .from_select(
        [*_GIVEN, "next_attempt_at", "receiver", *_FIXED],
        select(
            *map(_given, (*_GIVEN, "created_at")),
            organization.c.inbox_webhook_secret,
            *(literal(value) for value in _FIXED.values()),
        ).where(
            organization.c.id == bindparam("new_organization_id"), organization.c.inbox_webhook_secret.is_not(None)
        ),
    )
    .on_conflict_do_nothing(index_elements=["id"])
)


def add_notices(connection: Connection, notices: Iterable[Notice]) -> None:
    for each in notices:
        connection.execute(
            _insert,
            {
                "new_id": each.id,
                "new_organization_id": each.organization_id,
                "new_run_id": each.run_id,
                "new_workflow_run_id": each.workflow_run_id,
                "new_server_id": each.server_id,
                "new_event": each.event.value,
                "new_body": json.dumps(each.body, separators=(",", ":")),
                "new_created_at": each.at,
            },
        )
