"""Webhook deliveries in SQL. A change of the row claims a delivery; nothing stays locked
afterwards."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import Connection, Text, bindparam, func, select, update

from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from application.webhooks.ports import WEBHOOKS_TOPIC, ClaimedDelivery, Lane
from domain.audit.event import AuditEvent
from domain.errors import ServiceError
from domain.ids import OrganizationId, RunId, WebhookDeliveryId
from domain.json_value import JsonObject
from domain.teams import Teams
from domain.webhooks.delivery import NOTICES, DeliveryState, WebhookDelivery
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import push_config, run_request, webhook_delivery
from infrastructure.persistence.tables.owners import team_of_delivery
from infrastructure.persistence.webhooks.push_targets import target_of
from infrastructure.persistence.webhooks.rows import delivery_of, is_known, is_open, select_deliveries, state_row
from infrastructure.persistence.webhooks.urls import webhook_of

logger = logging.getLogger(__name__)

UNREADABLE_FOR = timedelta(hours=1)
"""How long an unreadable row is skipped: damaged, or written by another version."""
_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, ServiceError)

_table = webhook_delivery.c
_lane = (_table.organization_id + " " + _table.receiver).cast(Text)
_next_due = select(func.min(_table.next_attempt_at)).where(
    is_open, is_known, _lane.not_in(bindparam("full_lanes", expanding=True))
)
# Rows that another process is claiming are skipped.
_due = (
    select_deliveries.where(
        is_open,
        is_known,
        _table.next_attempt_at <= bindparam("moment"),
        _lane.not_in(bindparam("full_lanes", expanding=True)),
    )
    .order_by(_table.next_attempt_at, _table.id)
    .limit(bindparam("at_most"))
    .with_for_update(skip_locked=True)
)
_change = update(webhook_delivery).values(
    state=bindparam("new_state"),
    attempts=bindparam("new_attempts"),
    retried_after=bindparam("new_retried_after"),
    last_status=bindparam("new_last_status"),
    last_error=bindparam("new_last_error"),
    next_attempt_at=bindparam("new_next_attempt_at"),
    delivered_at=bindparam("new_delivered_at"),
)
# The count of attempts is the fence: a late result changes nothing.
_as_seen = (
    _table.id == bindparam("of_delivery"),
    _table.state == bindparam("seen_state"),
    _table.attempts == bindparam("seen_attempts"),
)
_change_seen = _change.where(*_as_seen)
_release = (
    update(webhook_delivery)
    .where(is_open, _table.state == DeliveryState.DELIVERING.value)
    .values(next_attempt_at=bindparam("moment"))
)
_set_aside = (
    update(webhook_delivery)
    .where(_table.id.in_(bindparam("unreadable", expanding=True)))
    .values(next_attempt_at=bindparam("moment"))
)
_contents = (
    select(_table.id, _table.body, run_request.c.webhook, run_request.c.webhook_url, push_config.c.sealed)
    .outerjoin(run_request, run_request.c.run_id == _table.run_id)
    .outerjoin(push_config, (push_config.c.run_id == _table.run_id) & (push_config.c.id == _table.push_config_id))
    .where(_table.id.in_(bindparam("taken", expanding=True)))
)
# Literal in the statement, so that the partial index over notices is used.
_is_notice = _table.event.in_(
    bindparam("notices", [event.value for event in NOTICES], expanding=True, literal_execute=True)
)
_get = select_deliveries.where(
    _table.organization_id == bindparam("of_organization"), _table.id == bindparam("of_delivery")
)


class SqlWebhookDeliveryStore:
    """The `WebhookDeliveryStore` port."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: SecretBox) -> None:
        self._database = database
        self._box = box
        self._wakeups = wakeups

    async def next_due(self, *, but: frozenset[Lane]) -> datetime | None:
        wanted = {"full_lanes": sorted(map(_lane_key, but))}

        def unit(connection: Connection) -> datetime | None:
            moment: datetime | None = connection.execute(_next_due, wanted).scalar_one()
            return moment

        return await self._database.read(unit, scope=SYSTEM)

    async def claim(
        self, *, at: datetime, until: datetime, limit: int, per_lane: int, busy: Mapping[Lane, int]
    ) -> tuple[ClaimedDelivery, ...]:
        """Claim due deliveries. Ones with unreadable contents are skipped for an hour and delay no
        others."""
        room = {_lane_key(lane): per_lane - count for lane, count in busy.items()}
        wanted = {
            "moment": at,
            "full_lanes": sorted(key for key, left in room.items() if left <= 0),
            "at_most": limit,
        }

        def unit(connection: Connection) -> tuple[ClaimedDelivery, ...]:
            left = dict(room)
            taken: list[WebhookDelivery] = []
            for row in connection.execute(_due, wanted).all():
                found = delivery_of(row)
                key = _lane_key(Lane(organization_id=found.organization_id, receiver=found.receiver))
                left[key] = left.get(key, per_lane) - 1
                after = found.taken(until=until)
                if left[key] >= 0 and _changed(connection, found, after):
                    taken.append(after)
            claimed, unreadable = _with_contents(connection, taken, self._box)
            if unreadable:
                logger.error("cannot read webhook deliveries", extra={"webhook_deliveries": unreadable})
                connection.execute(_set_aside, {"unreadable": unreadable, "moment": at + UNREADABLE_FOR})
            return claimed

        return await self._database.write(unit, scope=SYSTEM)

    async def release_all(self, *, at: datetime) -> int:
        return await self._database.write(
            lambda connection: connection.execute(_release, {"moment": at}).rowcount, scope=SYSTEM
        )

    async def settle(self, taken: WebhookDelivery, after: WebhookDelivery) -> bool:
        return await self._database.write(
            lambda connection: _changed(connection, taken, after), scope=taken.organization_id
        )

    async def get(
        self, organization_id: OrganizationId, delivery_id: WebhookDeliveryId, *, teams: Teams = None
    ) -> WebhookDelivery | None:
        wanted = {"of_organization": organization_id, "of_delivery": delivery_id}
        statement = _get.where(*seen_by(teams, team_of_delivery()))
        row = await self._database.read(
            lambda connection: connection.execute(statement, wanted).first(), scope=organization_id
        )
        return None if row is None else delivery_of(row)

    async def of_run(
        self, organization_id: OrganizationId, run_id: RunId, request: PageRequest
    ) -> Page[WebhookDelivery]:
        statement = select_deliveries.where(_table.organization_id == organization_id, _table.run_id == run_id)
        return await self._database.read(newest_page(statement, request, _table, delivery_of), scope=organization_id)

    async def of_inbox(self, organization_id: OrganizationId, request: PageRequest) -> Page[WebhookDelivery]:
        statement = select_deliveries.where(_table.organization_id == organization_id, _is_notice)
        return await self._database.read(newest_page(statement, request, _table, delivery_of), scope=organization_id)

    async def retry(self, seen: WebhookDelivery, after: WebhookDelivery, audit: AuditEvent) -> bool:

        def unit(connection: Connection) -> bool:
            changed = _changed(connection, seen, after)
            if changed:
                record(connection, audit)
            return changed

        return await self._database.write(
            unit, scope=seen.organization_id, after_commit=lambda _: self._wakeups.wake(WEBHOOKS_TOPIC)
        )


def _lane_key(lane: Lane) -> str:
    return f"{lane.organization_id} {lane.receiver}"


def _changed(connection: Connection, seen: WebhookDelivery, after: WebhookDelivery) -> bool:
    state = {f"new_{name}": value for name, value in state_row(after).items()}
    as_seen = {"of_delivery": seen.id, "seen_state": seen.state.value, "seen_attempts": seen.attempts}
    return connection.execute(_change_seen, {**state, **as_seen}).rowcount == 1


def _with_contents(
    connection: Connection, taken: list[WebhookDelivery], box: SecretBox
) -> tuple[tuple[ClaimedDelivery, ...], list[str]]:
    """The deliveries with their contents, and the ids of unreadable ones."""
    if not taken:
        return (), []
    rows = {row.id: row for row in connection.execute(_contents, {"taken": [each.id for each in taken]})}
    found: list[ClaimedDelivery] = []
    unreadable: list[str] = []
    for each in taken:
        row = rows[each.id]
        try:
            found.append(_claimed(each, row, box))
        except _UNREADABLE:
            unreadable.append(each.id)
    return tuple(found), unreadable


def _claimed(delivery: WebhookDelivery, row: AnyRow, box: SecretBox) -> ClaimedDelivery:
    if delivery.event in NOTICES:
        return ClaimedDelivery(delivery=delivery, webhook=None, body=row.body)
    if delivery.push_config_id is None:
        webhook = webhook_of(cast(JsonObject, row.webhook), row.webhook_url, box)
        return ClaimedDelivery(delivery=delivery, webhook=webhook, body=row.body)
    target = target_of(row.sealed, box)
    return ClaimedDelivery(delivery=delivery, webhook=target.webhook, body=row.body, headers=target.headers)
