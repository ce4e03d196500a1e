"""Open circuit breakers of MCP servers, in SQL: a row per server, on the database's clock.

`amount` is the number of openings in a row, `valid_until` when the server may be probed."""

from sqlalchemy import Connection, bindparam, delete, select, update

from domain.ids import McpServerId
from infrastructure.mcp.wrappers.shared_breakers import OpenBreaker
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.limits.rate_leases import database_time
from infrastructure.persistence.tables import limit_lease

_new = upsert(limit_lease)
_store = _new.on_conflict_do_update(
    ["limited", "holder"], set_={name: _new.excluded[name] for name in ("amount", "valid_until")}
)
_of_server = (limit_lease.c.limited == bindparam("of_server"), limit_lease.c.holder == "")
_get = select(limit_lease.c.amount, limit_lease.c.valid_until).where(*_of_server)
_lock = _get.with_for_update()
_hold = update(limit_lease).where(*_of_server).values(valid_until=bindparam("until"))
_close = delete(limit_lease).where(*_of_server)


class SqlBreakerStates:
    """The `BreakerStates` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def opened(self, server_id: McpServerId, breaker: OpenBreaker) -> None:
        def unit(connection: Connection) -> None:
            until = database_time(connection) + breaker.pause_s
            row = {"limited": _name(server_id), "holder": "", "amount": breaker.openings, "valid_until": until}
            connection.execute(_store, row)

        await self._database.write(unit, scope=SYSTEM)

    async def closed(self, server_id: McpServerId) -> None:
        named = {"of_server": _name(server_id)}
        await self._database.write(lambda connection: connection.execute(_close, named), scope=SYSTEM)

    async def of(self, server_id: McpServerId) -> OpenBreaker | None:
        def unit(connection: Connection) -> OpenBreaker | None:
            row = connection.execute(_get, {"of_server": _name(server_id)}).first()
            if row is None:
                return None
            return OpenBreaker(openings=row.amount, pause_s=max(0.0, row.valid_until - database_time(connection)))

        return await self._database.read(unit, scope=SYSTEM)

    async def probe(self, server_id: McpServerId, hold_s: float) -> bool:
        named = {"of_server": _name(server_id)}

        def unit(connection: Connection) -> bool:
            row = connection.execute(_lock, named).first()
            now = database_time(connection)
            if row is not None and row.valid_until > now:
                return False
            connection.execute(_hold, {**named, "until": now + hold_s})
            return True

        return await self._database.write(unit, scope=SYSTEM)


def _name(server_id: McpServerId) -> str:
    return f"breaker/{server_id}"
