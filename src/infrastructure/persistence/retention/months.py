"""Monthly partitions of tables on PostgreSQL: added before their month begins, removed after it.
See ADR 0089."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, Row, text

from application.audit.ports import Month
from domain.ids import OrganizationId
from infrastructure.persistence.engine.database import SYSTEM, Database, StorageAway
from infrastructure.persistence.engine.postgres.months import month_of, most_staying, oldest_month, remove_month
from infrastructure.persistence.tables import audit_event, gateway_call, run_event, tool_call

TABLES: Final = {audit_event.name: "id", gateway_call.name: "id", run_event.name: "run_id", tool_call.name: "run_id"}
"""With the column whose ids decide on the month."""
_CALLS: Final = gateway_call.name
AHEAD: Final = 2
"""Months after the present one that have a partition: as long may no process be able to add one."""

_add = text("SELECT add_months(:of, :ahead)")
_count_calls = text("SELECT count(*) FROM gateway_call WHERE id >= :low AND id < :high")
# A settled call stays settled, so equal marks are of equal calls.
_mark_of_calls = text("""
    SELECT concat(count(*), ':', sum(hashtextextended(session_id || id, 0))) FROM gateway_call
    WHERE id >= :low AND id < :high AND state = 'settled' AND organization_id = ANY(CAST(:organizations AS text[]))
""")
_staying_calls = text("""
    SELECT id FROM gateway_call
    WHERE id >= :low AND id < :high AND (state <> 'settled' OR organization_id <> ALL(CAST(:organizations AS text[])))
    LIMIT :at_most
""")


class SqlMonthlyTables:
    """The `MonthlyTables` port. On SQLite there is nothing to do."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add_months(self) -> None:
        for table in TABLES:

            def unit(connection: Connection, of: str = table) -> None:
                if connection.dialect.name != "sqlite":
                    connection.execute(_add, {"of": of, "ahead": AHEAD})

            await self._database.write(unit, scope=SYSTEM)

    async def remove_empty_months(self) -> int:
        removed = 0
        for table in TABLES:

            def unit(connection: Connection, of: str = table) -> bool:
                month = oldest_month(connection, of)
                if month is None or _has_rows(connection, of, month):
                    return False
                remove_month(connection, of, month.month, expected=0, kept=())
                return True

            while await self._database.write(unit, scope=SYSTEM):
                removed += 1
        return removed

    async def oldest_of_gateway_calls(self) -> Month | None:
        return await self._database.read(lambda connection: month_of(oldest_month(connection, _CALLS)), scope=SYSTEM)

    async def removable_gateway_calls(self, month: Month, organizations: Sequence[OrganizationId]) -> str | None:

        def unit(connection: Connection) -> str | None:
            found = _removable_calls(connection, month, organizations)
            return None if found is None else _mark(connection, found)

        return await self._database.read(unit, scope=SYSTEM)

    async def remove_gateway_calls(
        self, month: Month, organizations: Sequence[OrganizationId], *, marked: str | None = None
    ) -> bool:

        def unit(connection: Connection) -> bool:
            found = _removable_calls(connection, month, organizations)
            if found is None:
                return False
            if marked is not None and _mark(connection, found) != marked:
                raise StorageAway("A call of the month was settled or removed.")
            remove_month(connection, _CALLS, month.name, expected=found.count, kept=found.staying)
            return True

        return await self._database.write(unit, scope=SYSTEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RemovableCalls:
    """The month's calls, and those that stay."""

    wanted: Mapping[str, object]
    count: int
    staying: Sequence[str]


def _removable_calls(
    connection: Connection, month: Month, organizations: Sequence[OrganizationId]
) -> _RemovableCalls | None:
    """None if it is not the oldest month, or too many calls stay."""
    found = oldest_month(connection, _CALLS)
    if found is None or found.month != month.name:
        return None
    wanted = {"low": found.low, "high": found.high, "organizations": list(organizations)}
    count: int = connection.execute(_count_calls, wanted).scalar_one()
    most = most_staying(count)
    staying = connection.execute(_staying_calls, {**wanted, "at_most": most + 1}).scalars().all()
    return None if len(staying) > most else _RemovableCalls(wanted=wanted, count=count, staying=staying)


def _mark(connection: Connection, calls: _RemovableCalls) -> str:
    mark: str = connection.execute(_mark_of_calls, calls.wanted).scalar_one()
    return mark


def _has_rows(connection: Connection, of: str, month: "Row[tuple[str, str, str]]") -> bool:
    by = TABLES[of]
    any_row = text(f"SELECT EXISTS (SELECT FROM {of} WHERE {by} >= :low AND {by} < :high)")  # noqa: S608  # names of ours alone
    found: bool = connection.execute(any_row, {"low": month.low, "high": month.high}).scalar_one()
    return found
