"""Runs every contract test once per leg.

To add a leg: write a class with `__init__(self, request: pytest.FixtureRequest)` and
`open(*organizations)` as `tests.contract.stores.Leg` says, and name it in LEGS. It takes fixtures
(a temporary directory, the address of a database server of the session) with
`request.getfixturevalue`.
"""

from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest

from domain.audit.event import AuditAction
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from tests.builders import ORG, OTHER_ORG, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.sql_legs import CachedPostgresLeg, CachedSqliteLeg, PostgresLeg, SqliteLeg
from tests.contract.stores import InMemoryLeg, Leg, Stores
from tests.databases import PostgresDatabases

LEGS: dict[str, Callable[[pytest.FixtureRequest], Leg]] = {
    "memory": InMemoryLeg,
    "sqlite": SqliteLeg,
    "sqlite-cached": CachedSqliteLeg,
    "postgres": PostgresLeg,
    "postgres-cached": CachedPostgresLeg,
}


@pytest.fixture(params=list(LEGS))
def leg(request: pytest.FixtureRequest) -> Leg:
    """The backend under test, closed."""
    return LEGS[cast(str, request.param)](request)


@pytest.fixture
async def stores(leg: Leg) -> AsyncIterator[Stores]:
    """The backend under test with the organizations ORG and OTHER_ORG, and nothing else."""
    async with leg.open(an_organization(ORG), an_organization(OTHER_ORG)) as opened:
        yield opened


@pytest.fixture
async def empty_stores(leg: Leg) -> AsyncIterator[Stores]:
    """The backend under test as a first start finds it."""
    async with leg.open() as opened:
        yield opened


@pytest.fixture
async def run_stores(stores: Stores) -> Stores:
    """The backend under test with what a run needs: an agent and an empty thread of ORG."""
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    return stores


@pytest.fixture
async def postgres(postgres_databases: PostgresDatabases) -> AsyncIterator[tuple[str, Database]]:
    """A migrated database: its URL, and the way by which runs are submitted."""
    with postgres_databases.fresh() as url:
        database = PostgresDatabase(url, connections=2)
        await database.start()
        yield url, database
        await database.stop()
