"""Permits of processes for shared limits, in SQL: a row per limit and holder, on the database's
clock."""

from sqlalchemy import Connection, bindparam, delete, func, select, update

from application.system.shared_permits import EXPIRES_S
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.limits.rate_leases import database_time, forget_stale
from infrastructure.persistence.tables import limit_lease

_NO_HOLDER = ""
_new = upsert(limit_lease)
# The row without a holder is the lock of its limit.
_store = _new.on_conflict_do_update(
    ["limited", "holder"], set_={name: _new.excluded[name] for name in ("amount", "valid_until")}
)
_of_limit = limit_lease.c.limited == bindparam("of_limit")
_of_holder = limit_lease.c.holder == bindparam("of_holder")
_others = select(func.coalesce(func.sum(limit_lease.c.amount), 0)).where(
    _of_limit, limit_lease.c.holder != bindparam("of_holder"), limit_lease.c.valid_until >= bindparam("now")
)
_own = select(limit_lease.c.amount).where(_of_limit, _of_holder, limit_lease.c.valid_until >= bindparam("now"))
_named = limit_lease.c.limited.in_(bindparam("of_limits", expanding=True))
_drop = delete(limit_lease).where(_of_limit, _of_holder)
_valid = (
    select(limit_lease.c.limited)
    .where(_of_holder, _named, limit_lease.c.valid_until >= bindparam("now"))
    .order_by(limit_lease.c.limited)
    .with_for_update()
)
_renew = (
    update(limit_lease)
    .where(_of_holder, _named, limit_lease.c.valid_until >= bindparam("now"))
    .values(valid_until=bindparam("until"))
)
_withdraw = delete(limit_lease).where(_of_holder)


class SqlPermitLeases:
    """The `PermitLeases` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def lease(self, limited: str, holder: str, *, limit: int, held: int, wanted: int) -> int:
        def unit(connection: Connection) -> int:
            until = database_time(connection) + EXPIRES_S
            lock = {"limited": limited, "holder": _NO_HOLDER, "amount": 0, "valid_until": until}
            connection.execute(_store, lock)
            now = database_time(connection)
            named = {"of_limit": limited, "of_holder": holder}
            # What has expired meanwhile may be another's.
            kept = min(held, connection.execute(_own, {**named, "now": now}).scalar() or 0)
            free = limit - kept - int(connection.execute(_others, {**named, "now": now}).scalar_one())
            total = kept + max(0, min(held + wanted - kept, free))
            if total:
                row = {"limited": limited, "holder": holder, "amount": total, "valid_until": now + EXPIRES_S}
                connection.execute(_store, row)
            else:
                connection.execute(_drop, named)
            return total

        return await self._database.write(unit, scope=SYSTEM)

    async def renew(self, holder: str, limited: frozenset[str]) -> frozenset[str]:
        def unit(connection: Connection) -> frozenset[str]:
            now = database_time(connection)
            named = {"of_holder": holder, "of_limits": sorted(limited), "now": now}
            valid = frozenset(connection.execute(_valid, named).scalars())
            connection.execute(_renew, {**named, "until": now + EXPIRES_S})
            return valid

        return await self._database.write(unit, scope=SYSTEM)

    async def withdraw(self, holder: str) -> None:
        await self._database.write(
            lambda connection: connection.execute(_withdraw, {"of_holder": holder}), scope=SYSTEM
        )

    async def forget_expired(self) -> None:
        await self._database.write(forget_stale, scope=SYSTEM)
