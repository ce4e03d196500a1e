"""Gateway calls that retention is about to remove, page by page for the archive."""

from collections.abc import Mapping
from typing import cast

from sqlalchemy import Select, bindparam, select, tuple_

from application.audit.ports import Month
from domain.gateway.call import GatewayCall, GatewayCallState, GatewaySettlement
from domain.ids import OrganizationId, ThreadId
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.months import bounds_of
from infrastructure.persistence.gateway.call_rows import call_of
from infrastructure.persistence.tables import gateway_call, gateway_session

_pages = (
    select(gateway_call)
    .join(gateway_session, gateway_session.c.id == gateway_call.c.session_id)
    .where(gateway_session.c.organization_id == bindparam("of_organization"))
    .order_by(gateway_call.c.session_id, gateway_call.c.id)
    .limit(bindparam("at_most"))
)
_of_thread = _pages.where(gateway_session.c.thread_id == bindparam("of_thread"))
_of_month = _pages.where(
    gateway_call.c.id >= bindparam("low"),
    gateway_call.c.id < bindparam("high"),
    gateway_call.c.state == GatewayCallState.SETTLED.value,
)
_behind = tuple_(gateway_call.c.session_id, gateway_call.c.id) > tuple_(
    bindparam("after_session", type_=gateway_call.c.session_id.type),
    bindparam("after_call", type_=gateway_call.c.id.type),
)


class SqlRemovableCalls:
    """The `RemovableCalls` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def of_thread(
        self, organization_id: OrganizationId, thread_id: ThreadId, *, after: GatewayCall | None, limit: int
    ) -> tuple[GatewayCall | GatewaySettlement, ...]:
        wanted = {"of_organization": organization_id, "of_thread": thread_id, "at_most": limit}
        return await self._page(_of_thread, wanted, after)

    async def of_month(
        self, organization_id: OrganizationId, month: Month, *, after: GatewayCall | None, limit: int
    ) -> tuple[GatewaySettlement, ...]:
        bounds = await self._database.read(
            lambda connection: bounds_of(connection, gateway_call.name, month.name), scope=SYSTEM
        )
        wanted = {"of_organization": organization_id, "low": bounds.low, "high": bounds.high, "at_most": limit}
        return cast("tuple[GatewaySettlement, ...]", await self._page(_of_month, wanted, after))

    async def _page(
        self, statement: Select[tuple[object, ...]], wanted: Mapping[str, object], after: GatewayCall | None
    ) -> tuple[GatewayCall | GatewaySettlement, ...]:
        page = statement
        if after is not None:
            page = statement.where(_behind)
            wanted = {**wanted, "after_session": after.session_id, "after_call": after.id}
        rows = await self._database.read(lambda connection: connection.execute(page, wanted).all(), scope=SYSTEM)
        return tuple(settlement or call for call, settlement in map(call_of, rows))
