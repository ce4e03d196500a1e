"""Checks whether the database answers and accepts writes, and whether its schema works with this
code."""

import asyncio

from sqlalchemy import Connection, text

from application.system.readiness import Obstacle
from domain.errors import ServiceError
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres import queue_schema
from infrastructure.persistence.schema.revision import HEAD, stored_schema

PATIENCE_S = 2.0
_touch = text("UPDATE alembic_version SET version_num = version_num")


class DatabaseReadiness:
    """Reports why the database keeps this process from serving requests."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def problems(self) -> tuple[Obstacle, ...]:
        """`database` if it does not answer in time or accept writes, or its disk is full;
        `migrations` if this code does not work with its schema, `queue` for that of the run queue;
        empty when ready."""
        known = self._database.obstacle()
        if known is not None:
            return (Obstacle(part="database", detail=known),)
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await self._database.read(_schema_problems, scope=SYSTEM)
                if not any(obstacle.part == "migrations" for obstacle in found):
                    # Only a write proves that writes work: starting a transaction does not touch
                    # the disk.
                    await self._database.write(_rewrite, scope=SYSTEM)
        except (TimeoutError, ServiceError):
            return (Obstacle(part="database", detail="The database does not answer in time, or cannot be written to."),)
        return found


def _schema_problems(connection: Connection) -> tuple[Obstacle, ...]:
    stored = stored_schema(connection)
    if not stored.suits:
        found = f"revision {', '.join(stored.revisions)}" if stored.revisions else "no schema"
        detail = f"The database has {found}; this version needs {HEAD}. `dragoman db upgrade` of the newer version upgrades it."
        return (Obstacle(part="migrations", detail=detail),)
    if connection.dialect.name != "sqlite" and not queue_schema.suits(connection):
        detail = "The schema of the run queue is missing, or of another version. Run `dragoman db upgrade`."
        return (Obstacle(part="queue", detail=detail),)
    return ()


def _rewrite(connection: Connection) -> None:
    connection.execute(_touch)
