"""Both databases, open and with the organization ORG; and the stores over them."""

from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import cast

import pytest
from sqlalchemy import Connection

from domain.audit.event import AuditAction
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.identity.store import add_organization
from tests.builders import ORG, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases, SqliteFiles


def add_first_organization(connection: Connection) -> None:
    add_organization(connection, an_organization(ORG))


@pytest.fixture
async def sqlite(sqlite_files: SqliteFiles) -> AsyncIterator[SqliteDatabase]:
    """A migrated SQLite file."""
    database = SqliteDatabase(sqlite_files.fresh())
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    yield database
    await database.stop()


@pytest.fixture
async def postgres(postgres_databases: PostgresDatabases) -> AsyncIterator[PostgresDatabase]:
    """A migrated PostgreSQL database."""
    with postgres_databases.fresh() as url:
        database = PostgresDatabase(url, connections=6)
        await database.start()
        await database.write(add_first_organization, scope=SYSTEM)
        yield database
        await database.stop()


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """Each database in turn."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            files = cast(SqliteFiles, request.getfixturevalue("sqlite_files"))
            opened: Database = SqliteDatabase(files.fresh())
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            opened = PostgresDatabase(stack.enter_context(databases.fresh()), connections=6)
        await opened.start()
        await opened.write(add_first_organization, scope=SYSTEM)
        yield opened
        await opened.stop()


@pytest.fixture
def patient_readiness(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is no reason to say that a database does not answer."""
    monkeypatch.setattr("infrastructure.persistence.schema.readiness.PATIENCE_S", 60.0)


@pytest.fixture
async def stores(database: Database) -> Stores:
    """All stores over each database in turn, with an agent and a thread."""
    stores = sql_stores(database)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    return stores
