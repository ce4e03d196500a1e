"""Whether the database answers and takes writes, at the revision this code expects."""

import asyncio

from sqlalchemy import Connection, text

from domain.errors import ServiceError
from infrastructure.persistence.database import SYSTEM, Database
from infrastructure.persistence.revision import HEAD

PATIENCE_S = 2.0
_stored = text("SELECT version_num FROM alembic_version")
_touch = text("UPDATE alembic_version SET version_num = version_num")


class DatabaseReadiness:
    """Says what keeps this process from serving requests."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def problems(self) -> tuple[str, ...]:
        """`database` when it does not answer in time or cannot be written to, `migrations` when its schema is another
        one; empty when ready."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                revisions = await self._database.read(_revisions, scope=SYSTEM)
                # Only writing proves that one can: beginning a transaction does not touch the disk.
                await self._database.write(_rewrite, scope=SYSTEM)
        except (TimeoutError, ServiceError):
            return ("database",)
        return () if revisions == [HEAD] else ("migrations",)


def _revisions(connection: Connection) -> list[str]:
    return [str(revision) for revision in connection.execute(_stored).scalars()]


def _rewrite(connection: Connection) -> None:
    connection.execute(_touch)
