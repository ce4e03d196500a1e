"""Lots of places in shared token buckets, in SQL: a row per bucket, on the database's clock."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, select, text, tuple_, update

from application.system.rates import Bucket
from domain.rate_limit import CallSchedule, RateLimit, RateLot
from infrastructure.persistence.columns.upsert import upsert
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import limit_lease

_NO_HOLDER = ""
_STALE_S = 60.0
_of_bucket = (limit_lease.c.limited == bindparam("of_bucket"), limit_lease.c.holder == _NO_HOLDER)
_lock = select(limit_lease.c.valid_until).where(*_of_bucket).with_for_update()
_of_buckets = select(limit_lease.c.limited, limit_lease.c.valid_until).where(
    limit_lease.c.limited.in_(bindparam("of_buckets", expanding=True)), limit_lease.c.holder == _NO_HOLDER
)
_add = upsert(limit_lease).on_conflict_do_nothing(["limited", "holder"])
_take = update(limit_lease).where(*_of_bucket).values(valid_until=bindparam("full_at"))
_key = tuple_(limit_lease.c.limited, limit_lease.c.holder)
_stale = (
    select(limit_lease.c.limited, limit_lease.c.holder)
    .where(limit_lease.c.valid_until < bindparam("before"))
    .with_for_update(skip_locked=True)
)
_forget = delete(limit_lease).where(_key.in_(_stale))
_NOW = {
    "sqlite": text("SELECT (julianday('now') - 2440587.5) * 86400.0"),
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) AS double precision)"),
}


def database_time(connection: Connection) -> float:
    """Seconds since 1970 on the database's clock, which all processes share."""
    return float(connection.execute(_NOW[connection.dialect.name]).scalar_one())


def forget_stale(connection: Connection) -> None:
    """Delete what was valid until a minute ago: full buckets, and what dead processes held."""
    connection.execute(_forget, {"before": database_time(connection) - _STALE_S})


class SqlRateLeases:
    """The `RateLeases` port."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def lease(self, bucket: str, limit: RateLimit, *, wanted: int, within_s: float) -> RateLot:
        key = {"of_bucket": _key_of(bucket, limit)}

        def unit(connection: Connection) -> RateLot:
            full_at = connection.execute(_lock, key).scalar()
            if full_at is None:
                new = {"limited": key["of_bucket"], "holder": _NO_HOLDER, "amount": 0, "valid_until": 0.0}
                connection.execute(_add, new)
                full_at = connection.execute(_lock, key).scalar_one()
            schedule = CallSchedule(limit=limit, full_at=full_at)
            lot, after = schedule.leased(wanted, database_time(connection), within_s)
            if lot.count:
                connection.execute(_take, {**key, "full_at": after.full_at})
            return lot

        return await self._database.write(unit, scope=SYSTEM)

    async def forget_full(self) -> None:
        await self._database.write(forget_stale, scope=SYSTEM)

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        if not buckets:
            return ()
        keys = [_key_of(bucket, limit) for bucket, limit in buckets]

        def unit(connection: Connection) -> tuple[int, ...]:
            now = database_time(connection)
            rows = connection.execute(_of_buckets, {"of_buckets": keys})
            full_at = {row.limited: row.valid_until for row in rows}
            return tuple(
                CallSchedule(limit=limit, full_at=full_at.get(key, 0.0)).used(now)
                for key, (_, limit) in zip(keys, buckets, strict=True)
            )

        return await self._database.read(unit, scope=SYSTEM)


def _key_of(bucket: str, limit: RateLimit) -> str:
    """Another limit is another bucket, as if never used."""
    return f"{bucket} {limit.calls}/{limit.per_s:g}"
