"""Whether the database answers, at the revision this code expects."""

import asyncio

from sqlalchemy import Connection, text

from domain.errors import ServiceError
from infrastructure.persistence.database import Database
from infrastructure.persistence.revision import HEAD

PATIENCE_S = 2.0
_stored = text("SELECT version_num FROM alembic_version")


class DatabaseReadiness:
    """Says what keeps this process from serving requests."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def problems(self) -> tuple[str, ...]:
        """`database` when it does not answer in time, `migrations` when its schema is another one; empty when ready."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                revisions = await self._database.read(_revisions)
        except (TimeoutError, ServiceError):
            return ("database",)
        return () if revisions == [HEAD] else ("migrations",)


def _revisions(connection: Connection) -> list[str]:
    return [str(revision) for revision in connection.execute(_stored).scalars()]
