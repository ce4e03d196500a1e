"""What the database's part in readiness says, on both databases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from sqlalchemy import text

from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.queue_schema import SCHEMA, VERSION
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.schema.readiness import DatabaseReadiness
from infrastructure.persistence.schema.revision import HEAD
from tests.databases import PostgresDatabases, SqliteFiles
from tests.stoppable_postgres import stoppable_postgres

pytestmark = pytest.mark.usefixtures("patient_readiness")
OLDER = "0001"


@asynccontextmanager
async def opened(database: SqliteDatabase | PostgresDatabase) -> AsyncIterator[DatabaseReadiness]:
    await database.start()
    try:
        yield DatabaseReadiness(database=database)
    finally:
        await database.stop()


async def execute(database: Database, statement: str) -> None:
    await database.write(lambda connection: connection.execute(text(statement)).close(), scope=SYSTEM)


async def seen(readiness: DatabaseReadiness) -> list[tuple[str, str]]:
    return [(obstacle.part, obstacle.detail) for obstacle in await readiness.problems()]


@pytest.mark.requirement("G2")
async def test_a_schema_of_another_version_is_said_with_both_revisions(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh())
    async with opened(database) as readiness:
        assert await seen(readiness) == []
        await execute(database, f"UPDATE alembic_version SET version_num = '{OLDER}'")
        [(part, detail)] = await seen(readiness)
        assert part == "migrations"
        assert OLDER in detail
        assert HEAD in detail


@pytest.mark.requirement("G2")
async def test_a_database_without_a_schema_lacks_migrations(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh())
    async with opened(database) as readiness:
        await execute(database, "DROP TABLE alembic_version")
        assert [part for part, _ in await seen(readiness)] == ["migrations"]


@pytest.mark.requirement("G2", "E6")
async def test_on_postgresql_the_schema_of_the_queue_has_to_be_there_too(
    postgres_databases: PostgresDatabases,
) -> None:
    with postgres_databases.fresh() as url:
        async with opened(PostgresDatabase(url, connections=2)) as readiness:
            assert await seen(readiness) == []
            with psycopg.connect(postgres_databases.owner_url(url), autocommit=True) as owner:
                owner.execute(f"COMMENT ON SCHEMA {SCHEMA} IS 'older'")
                try:
                    assert [part for part, _ in await seen(readiness)] == ["queue"]
                finally:
                    owner.execute(f"COMMENT ON SCHEMA {SCHEMA} IS '{VERSION}'")
            assert await seen(readiness) == []


@pytest.mark.requirement("G2", "E6")
async def test_a_postgresql_that_is_stopped_is_said_and_found_again_when_it_is_back() -> None:
    with (
        stoppable_postgres() as server,
        PostgresDatabases(server.url).prepared() as databases,
        databases.fresh() as url,
    ):
        async with opened(PostgresDatabase(url, connections=2)) as readiness:
            assert await seen(readiness) == []
            server.stop("fast")
            try:
                assert [part for part, _ in await seen(readiness)] == ["database"]
            finally:
                server.start()
            assert await seen(readiness) == []
