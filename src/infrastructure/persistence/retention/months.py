"""Monthly partitions of tables on PostgreSQL: added before their month begins, removed after it. See ADR 0089."""

from typing import Final

from sqlalchemy import Connection, Row, text

from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.tables import audit_event, gateway_call

TABLES: Final = (audit_event, gateway_call)
AHEAD: Final = 2
"""Months after the present one that have a partition: as long may no process be able to add one."""

_add = text("SELECT add_months(:of, :ahead)")
# By its bounds: a scan of the partitioned table reads no other partition.
_oldest = text("""
    SELECT month, low, high FROM months_of(:of)
    WHERE month ~ '[0-9]$' AND to_date(right(month, 7), 'YYYY_MM') + interval '1 month' <= now() AT TIME ZONE 'UTC'
    ORDER BY month LIMIT 1
""")
_remove_empty = text("SELECT remove_month(:of, :month, 0, '{}')")


class SqlMonthlyTables:
    """The `MonthlyTables` port. On SQLite there is nothing to do."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add_months(self) -> None:
        for table in TABLES:

            def unit(connection: Connection, of: str = table.name) -> None:
                if connection.dialect.name != "sqlite":
                    connection.execute(_add, {"of": of, "ahead": AHEAD})

            await self._database.write(unit, scope=SYSTEM)

    async def remove_empty_months(self) -> int:
        removed = 0
        for table in TABLES:

            def unit(connection: Connection, of: str = table.name) -> bool:
                month = oldest_month(connection, of)
                if month is None or _has_rows(connection, of, month):
                    return False
                connection.execute(_remove_empty, {"of": of, "month": month.month})
                return True

            while await self._database.write(unit, scope=SYSTEM):
                removed += 1
        return removed


def oldest_month(connection: Connection, of: str) -> "Row[tuple[str, str, str]] | None":
    """Name of the partition and bounds of its ids; None if no month has ended, and on SQLite."""
    if connection.dialect.name == "sqlite":
        return None
    return connection.execute(_oldest, {"of": of}).first()


def _has_rows(connection: Connection, of: str, month: "Row[tuple[str, str, str]]") -> bool:
    any_row = text(f"SELECT EXISTS (SELECT FROM {of} WHERE id >= :low AND id < :high)")  # noqa: S608  # names of ours alone
    found: bool = connection.execute(any_row, {"low": month.low, "high": month.high}).scalar_one()
    return found
