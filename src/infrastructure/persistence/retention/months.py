"""Monthly partitions of tables on PostgreSQL: added before their month begins, removed after it. See ADR 0089."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, Row, text

from application.audit.ports import Month
from domain.ids import OrganizationId
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.months import month_of, most_staying, oldest_month, remove_month
from infrastructure.persistence.tables import audit_event, gateway_call, run_event, tool_call

TABLES: Final = {audit_event.name: "id", gateway_call.name: "id", run_event.name: "run_id", tool_call.name: "run_id"}
"""With the column whose ids decide on the month."""
_CALLS: Final = gateway_call.name
AHEAD: Final = 2
"""Months after the present one that have a partition: as long may no process be able to add one."""

_add = text("SELECT add_months(:of, :ahead)")
_count_calls = text("SELECT count(*) FROM gateway_call WHERE id >= :low AND id < :high")
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

    async def remove_gateway_calls(self, month: Month, organizations: Sequence[OrganizationId]) -> bool:

        def unit(connection: Connection) -> bool:
            found = oldest_month(connection, _CALLS)
            if found is None or found.month != month.name:
                return False
            bounds = {"low": found.low, "high": found.high}
            count: int = connection.execute(_count_calls, bounds).scalar_one()
            staying = {**bounds, "organizations": list(organizations), "at_most": most_staying(count) + 1}
            kept = connection.execute(_staying_calls, staying).scalars().all()
            if len(kept) > most_staying(count):
                return False
            remove_month(connection, _CALLS, month.name, expected=count, kept=kept)
            return True

        return await self._database.write(unit, scope=SYSTEM)


def _has_rows(connection: Connection, of: str, month: "Row[tuple[str, str, str]]") -> bool:
    by = TABLES[of]
    any_row = text(f"SELECT EXISTS (SELECT FROM {of} WHERE {by} >= :low AND {by} < :high)")  # noqa: S608  # names of ours alone
    found: bool = connection.execute(any_row, {"low": month.low, "high": month.high}).scalar_one()
    return found
