"""Removing a month of the audit trail at once, with its partition on PostgreSQL. See ADR 0089."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

from application.audit.ports import ExpiredPart, Month
from domain.audit.chain import ChainKeys, pruned
from infrastructure.persistence.audit.rows import record
from infrastructure.persistence.audit.seals import own_head, save_head
from infrastructure.persistence.engine.database import SYSTEM, Database, StorageAway
from infrastructure.persistence.engine.postgres.months import month_of, most_staying, oldest_month, remove_month
from infrastructure.persistence.tables import audit_event

_ENTRIES: Final = audit_event.name
_PARTS: Final = (
    """unnest(CAST(:organizations AS text[]), CAST(:throughs AS bigint[])) AS part (organization_id, through)"""
)
_count = text("SELECT count(*) FROM audit_event WHERE id >= :low AND id < :high")
_staying = text(f"""
    SELECT id FROM audit_event WHERE id >= :low AND id < :high AND NOT EXISTS (
        SELECT FROM audit_seal JOIN {_PARTS} ON part.organization_id = audit_seal.organization_id AND number <= through
        WHERE event_id = audit_event.id)
    LIMIT :at_most
""")  # noqa: S608  # names of ours alone
# Entries of the same parts that are in another month by their ids, or in none.
_remove_others = text(f"""
    DELETE FROM audit_event WHERE id = ANY(ARRAY(
        SELECT event_id FROM audit_seal JOIN {_PARTS} ON part.organization_id = audit_seal.organization_id AND number <= through
        WHERE event_id < :low OR event_id >= :high))
""")  # noqa: S608  # names of ours alone
_remove_seals = text(f"""
    DELETE FROM audit_seal USING {_PARTS} WHERE part.organization_id = audit_seal.organization_id AND number <= through
""")  # noqa: S608  # names of ours alone


class SqlAuditMonths:
    """The `AuditMonths` port. On SQLite there are no months."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def oldest(self) -> Month | None:
        return await self._database.read(lambda connection: month_of(oldest_month(connection, _ENTRIES)), scope=SYSTEM)

    async def remove(self, month: Month, parts: Sequence[ExpiredPart], *, keys: ChainKeys) -> bool:
        ordered = sorted(parts, key=lambda part: part.organization_id)

        def unit(connection: Connection) -> bool:
            found = oldest_month(connection, _ENTRIES)
            if found is None or found.month != month.name:
                return False
            heads = [own_head(connection, part.organization_id, keys) for part in ordered]
            if any(head.pruned_through != part.start for head, part in zip(heads, ordered, strict=True)):
                raise StorageAway("The start of an audit chain has changed.")
            of_parts = {
                "organizations": [part.organization_id for part in ordered],
                "throughs": [part.last.number for part in ordered],
                "low": found.low,
                "high": found.high,
            }
            count: int = connection.execute(_count, of_parts).scalar_one()
            staying = {**of_parts, "at_most": most_staying(count) + 1}
            kept = connection.execute(_staying, staying).scalars().all()
            if len(kept) > most_staying(count):
                return False
            connection.execute(_remove_others, of_parts)
            connection.execute(_remove_seals, of_parts)
            for head, part in zip(heads, ordered, strict=True):
                save_head(connection, pruned(head, part.last, key=keys.current))
            record(connection, *(part.audit for part in ordered))
            # Last, as it locks the whole trail.
            remove_month(connection, _ENTRIES, month.name, expected=count, kept=kept)
            return True

        return await self._database.write(unit, scope=SYSTEM)
