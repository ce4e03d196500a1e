"""Removing a month of events and tool calls of runs at once, with its partitions on PostgreSQL. See
ADR 0099."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Text,
    and_,
    bindparam,
    column,
    func,
    or_,
    select,
    text,
    type_coerce,
)

from application.audit.ports import Month
from domain.ids import OrganizationId
from infrastructure.persistence.columns.column_types import Moment, micros
from infrastructure.persistence.engine.database import SYSTEM, Database, StorageAway
from infrastructure.persistence.engine.postgres.months import month_of, most_staying, oldest_month, remove_month
from infrastructure.persistence.retention.store import is_idle_since
from infrastructure.persistence.tables import run, run_event, thread, tool_call

FEW: Final = 1_000
_TABLES: Final = (run_event.name, tool_call.name)
_run = run.alias("of_month")
_of_month = and_(_run.c.id >= bindparam("low"), _run.c.id < bindparam("high"))
_count_runs = select(func.count()).select_from(_run).where(_of_month)
_released = (
    func.unnest(bindparam("organizations", type_=ARRAY(Text)), bindparam("befores", type_=ARRAY(BigInteger)))
    .table_valued(column("organization_id", Text), column("idle_before", BigInteger))
    .render_derived(name="released")
)
_staying_runs = (
    select(_run.c.id)
    .select_from(
        _run.join(thread, thread.c.id == _run.c.thread_id).outerjoin(
            _released, _released.c.organization_id == _run.c.organization_id
        )
    )
    .where(
        _of_month,
        or_(_released.c.idle_before.is_(None), ~is_idle_since(type_coerce(_released.c.idle_before, Moment))),
    )
    .limit(bindparam("at_most"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Removal:
    table: str
    month: str
    rows: int
    staying: int
    kept: tuple[str, ...]


class SqlRunMonths:
    """The `RunMonths` port. On SQLite there are no months. Up to `few` events stay of any month, so
    that one thread in use for years does not keep all of them."""

    def __init__(self, *, database: Database, few: int = FEW) -> None:
        self._database = database
        self._few = few

    async def oldest(self) -> Month | None:
        return await self._database.read(
            lambda connection: month_of(oldest_month(connection, run_event.name)), scope=SYSTEM
        )

    async def remove(self, month: Month, idle_before: Mapping[OrganizationId, datetime]) -> bool:

        def unit(connection: Connection) -> bool:
            found = oldest_month(connection, run_event.name)
            if found is None or found.month != month.name:
                return False
            bounds = {"low": found.low, "high": found.high}
            most = most_staying(connection.execute(_count_runs, bounds).scalar_one(), few=self._few)
            wanted = {
                **bounds,
                "organizations": list(idle_before),
                "befores": [micros(before) for before in idle_before.values()],
                "at_most": most + 1,
            }
            staying = connection.execute(_staying_runs, wanted).scalars().all()
            if len(staying) > most:
                return False
            removals = _removals(connection, bounds, list(staying), few=self._few)
            for one in removals:
                remove_month(connection, one.table, one.month, expected=one.rows, kept=one.kept)
            # Runs are locked by now: those that began meanwhile are seen.
            if removals and not set(connection.execute(_staying_runs, wanted).scalars()) <= set(staying):
                raise StorageAway("A thread of the month is in use again.")
            return bool(removals)

        return await self._database.write(unit, scope=SYSTEM)


def _removals(connection: Connection, bounds: Mapping[str, str], staying: list[str], *, few: int) -> list[_Removal]:
    """Of each table that has the month. Empty if one has an older month, or too many of its rows
    stay."""
    removals = []
    for table in _TABLES:
        found = oldest_month(connection, table)
        if found is None or found.low >= bounds["high"]:
            continue
        if (found.low, found.high) != (bounds["low"], bounds["high"]):
            return []
        removal = _removal(connection, table, found.month, bounds, staying)
        if removal.staying > most_staying(removal.rows, few=few):
            return []
        removals.append(removal)
    return removals


def _removal(connection: Connection, table: str, month: str, bounds: Mapping[str, str], staying: list[str]) -> _Removal:
    count = text(f"SELECT count(*) FROM {table} WHERE run_id >= :low AND run_id < :high")  # noqa: S608  # names of ours alone
    kept = text(f"SELECT run_id, count(*) AS rows FROM {table} WHERE run_id = ANY(:staying) GROUP BY run_id")  # noqa: S608
    rows: int = connection.execute(count, bounds).scalar_one()
    stay = connection.execute(kept, {"staying": staying}).all()
    kept_runs = tuple(one.run_id for one in stay)
    return _Removal(table=table, month=month, rows=rows, staying=sum(one.rows for one in stay), kept=kept_runs)
