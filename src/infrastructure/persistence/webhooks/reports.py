"""Deliveries of an organization to all webhooks, in SQL, over the index by time."""

from sqlalchemy import Connection, and_, case, func, select

from application.system.pages import Page, PageRequest
from application.webhooks.ports import DeliveryFilter, WebhookReceiver
from domain.ids import OrganizationId
from domain.teams import Teams
from domain.webhooks.delivery import NOTICES, OPEN_STATES, DeliveryState, WebhookDelivery
from infrastructure.persistence.columns.paging import among_newest, newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import webhook_delivery
from infrastructure.persistence.tables.owners import team_of_delivery
from infrastructure.persistence.webhooks.rows import delivery_of, select_deliveries

_table = webhook_delivery.c
_is_notice = _table.event.in_([event.value for event in NOTICES])
_owner = team_of_delivery()
_is_open = _table.state.in_([state.value for state in OPEN_STATES])


class SqlDeliveryReports:
    """The `DeliveryReports` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def page(
        self, organization_id: OrganizationId, wanted: DeliveryFilter, request: PageRequest
    ) -> Page[WebhookDelivery]:
        conditions = [_table.organization_id == organization_id]
        if wanted.since is not None:
            conditions.append(_table.created_at >= wanted.since)
        if wanted.until is not None:
            conditions.append(_table.created_at < wanted.until)
        if not wanted.has_notices:
            conditions.append(~_is_notice)
        if wanted.state is not None:
            conditions.append(_table.state == wanted.state.value)
        if wanted.receiver is not None:
            conditions.append(_table.receiver == wanted.receiver)
        if wanted.state is not None or wanted.receiver is not None:
            conditions.append(among_newest(webhook_delivery, organization_id, until=wanted.until))
        statement = select_deliveries.where(and_(*conditions))
        return await self._database.read(
            newest_page(statement, request, _table, delivery_of, owner=_owner), scope=organization_id
        )

    async def receivers(
        self, organization_id: OrganizationId, *, has_notices: bool, limit: int, teams: Teams = None
    ) -> tuple[WebhookReceiver, ...]:
        of_receiver = (_table.receiver, _is_notice)
        newest = (_table.created_at.desc(), _table.id.desc())
        conditions = [_table.organization_id == organization_id, among_newest(webhook_delivery, organization_id)]
        conditions += seen_by(teams, _owner)
        if not has_notices:
            conditions.append(~_is_notice)
        is_failed = _table.state == DeliveryState.FAILED.value
        numbered = (
            select_deliveries.add_columns(
                case((_is_notice, 1), else_=0).label("of_inbox"),
                func.row_number().over(partition_by=of_receiver, order_by=newest).label("place"),
                func.count().over(partition_by=of_receiver).label("deliveries"),
                func.sum(case((_is_open, 1), else_=0)).over(partition_by=of_receiver).label("open"),
                func.sum(case((is_failed, 1), else_=0)).over(partition_by=of_receiver).label("failed"),
            )
            .where(and_(*conditions))
            .subquery()
        )
        statement = select(numbered).where(numbered.c.place == 1)
        statement = statement.order_by(numbered.c.created_at.desc(), numbered.c.id.desc()).limit(limit)

        def unit(connection: Connection) -> tuple[WebhookReceiver, ...]:
            return tuple(
                WebhookReceiver(
                    receiver=row.receiver,
                    of_inbox=bool(row.of_inbox),
                    deliveries=int(row.deliveries),
                    open=int(row.open),
                    failed=int(row.failed),
                    last=delivery_of(row),
                )
                for row in connection.execute(statement)
            )

        return await self._database.read(unit, scope=organization_id)
