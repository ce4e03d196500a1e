"""Settings of gateway clients since their handshakes, in SQL."""

from collections.abc import Callable

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy.exc import IntegrityError

from domain.errors import not_found
from domain.gateway.client import ClientSettings, GatewayClient
from domain.ids import GatewayClientId, OrganizationId
from domain.mcp.log_level import LogLevel
from infrastructure.persistence.columns.paging import AnyRow
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.tables import gateway_client

_insert_unless_there = upsert(gateway_client).on_conflict_do_nothing(index_elements=["id"])
_get = select(gateway_client).where(
    gateway_client.c.organization_id == bindparam("of_organization"), gateway_client.c.id == bindparam("client_id")
)
_lock = _get.with_for_update()
_update = (
    update(gateway_client)
    .where(gateway_client.c.id == bindparam("client_id"))
    .values(
        log_level=bindparam("new_log_level"),
        subscriptions=bindparam("new_subscriptions"),
        ended_at=bindparam("new_ended_at"),
    )
)


class SqlGatewayClientStore:
    """The `GatewayClientStore` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def settings(self, organization_id: OrganizationId, client_id: GatewayClientId) -> ClientSettings:
        wanted = {"of_organization": organization_id, "client_id": client_id}

        def unit(connection: Connection) -> ClientSettings:
            row = connection.execute(_get, wanted).first()
            return ClientSettings() if row is None else _settings_of(row)

        return await self._database.read(unit, scope=organization_id)

    async def change(
        self, client: GatewayClient, change: Callable[[ClientSettings], ClientSettings]
    ) -> ClientSettings | None:
        wanted = {"of_organization": client.organization_id, "client_id": client.id}

        def unit(connection: Connection) -> ClientSettings | None:
            connection.execute(_insert_unless_there, _new_row(client))
            present = _settings_of(connection.execute(_lock, wanted).one())
            if present.ended_at is not None:
                return None
            changed = change(present)
            values = {
                "client_id": client.id,
                "new_log_level": None if changed.log_level is None else changed.log_level.value,
                "new_subscriptions": list(changed.subscriptions),
                "new_ended_at": changed.ended_at,
            }
            connection.execute(_update, values)
            return changed

        try:
            return await self._database.write(unit, scope=client.organization_id)
        except IntegrityError as exc:
            raise not_found("gateway session", client.session_id) from exc


def _new_row(client: GatewayClient) -> dict[str, object]:
    return {
        "id": client.id,
        "organization_id": client.organization_id,
        "session_id": client.session_id,
        "log_level": None,
        "subscriptions": [],
        "ended_at": None,
    }


def _settings_of(row: AnyRow) -> ClientSettings:
    return ClientSettings(
        log_level=None if row.log_level is None else LogLevel(row.log_level),
        subscriptions=tuple(row.subscriptions),
        ended_at=row.ended_at,
    )
