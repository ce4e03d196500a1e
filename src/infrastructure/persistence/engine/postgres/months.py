"""Months of partitioned tables: which is the oldest, and its removal. `migrations/months.py` has
the functions. See ADR 0089."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from sqlalchemy import Connection, Row, text

from application.audit.ports import Month
from infrastructure.persistence.engine.database import Database, Scope, Unit

T = TypeVar("T")

_MOST_COPIED: Final = 10_000

# By its bounds: a scan of the partitioned table reads no other partition.
_oldest = text("""
    SELECT month, low, high FROM months_of(:of)
    WHERE month ~ '[0-9]$' AND to_date(right(month, 7), 'YYYY_MM') + interval '1 month' <= now() AT TIME ZONE 'UTC'
    ORDER BY month LIMIT 1
""")
# The function reads the catalog as it is now, the table as the snapshot of the transaction shows
# it.
_changed = text("""
    SELECT (SELECT array_agg(CAST(relid AS oid) ORDER BY relid) FROM pg_partition_tree(CAST(:of AS regclass)) WHERE level = 1)
        IS DISTINCT FROM (SELECT array_agg(inhrelid ORDER BY inhrelid) FROM pg_inherits WHERE inhparent = CAST(:of AS regclass))
""")
_bounds = text("SELECT low, high FROM months_of(:of) WHERE month = :month")
_remove = text("SELECT remove_month(:of, :month, :expected, CAST(:kept AS text[]))")


def month_of(found: "Row[tuple[str, str, str]] | None") -> Month | None:
    """The month of a partition."""
    if found is None:
        return None
    year, month = (int(part) for part in found.month.split("_")[-2:])
    return Month(name=found.month, ends=datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC))


def most_staying(count: int, *, few: int = 0) -> int:
    """How many rows of a month may stay when it is removed: they are copied while its table is
    locked. A `few` always may."""
    return max(few, min(count // 10, _MOST_COPIED))


def remove_month(connection: Connection, of: str, month: str, *, expected: int, kept: Sequence[str]) -> None:
    """Remove it but for the rows with these ids, of runs in tables that are divided by runs. Fails
    if it has not the expected number of rows, or not these, any more."""
    connection.execute(_remove, {"of": of, "month": month, "expected": expected, "kept": list(kept)})


def oldest_month(connection: Connection, of: str) -> "Row[tuple[str, str, str]] | None":
    """Name of the partition and bounds of its ids; None if no month has ended, and on SQLite."""
    if connection.dialect.name == "sqlite":
        return None
    return connection.execute(_oldest, {"of": of}).first()


def bounds_of(connection: Connection, of: str, month: str) -> "Row[tuple[str, str]]":
    """Bounds of the ids in a partition."""
    return connection.execute(_bounds, {"of": of, "month": month}).one()


async def read_past_changes(database: Database, unit: Unit[T], *, of: str, scope: Scope) -> T:
    """Read from a table with months, and once more if some were added or removed after the
    snapshot: it does not show rows that moved."""

    def checked(connection: Connection) -> tuple[T, bool]:
        return unit(connection), _months_have_changed(connection, of)

    found, is_past = await database.read(checked, scope=scope)
    return await database.read(unit, scope=scope) if is_past else found


def _months_have_changed(connection: Connection, of: str) -> bool:
    if connection.dialect.name == "sqlite":
        return False
    changed: bool = connection.execute(_changed, {"of": of}).scalar_one()
    return changed
