"""The order in which queues hand out runs: the same in one process and over many."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import psycopg
import pytest

from domain.audit.event import AuditAction
from domain.identity.organization import Organization
from domain.ids import AgentId, OrganizationId, RunId
from domain.runs.lane import Lane
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue
from infrastructure.jobs.run_flows import SqlRunFlows
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.queue_schema import SCHEMA
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.identity.store import add_organization
from tests.builders import (
    ORG,
    OTHER_ORG,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    an_agent,
    an_audit_event,
    an_organization,
    numbered,
)
from tests.contract.queue_consumers import ConsumedQueue, Handler, consume, stop
from tests.contract.sql_legs import sql_stores
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases, SqliteFiles

THIRD_ORG = OrganizationId(numbered("org", 3))


@dataclass(kw_only=True)
class FairQueue:
    """A queue over stored runs."""

    queue: ConsumedQueue
    database: Database
    stores: Stores
    owners: dict[RunId, str] = field(default_factory=dict)

    async def organization(self, id: OrganizationId, *, weight: int = 1) -> None:
        organization: Organization = replace(an_organization(id), queue_weight=weight)
        await self.database.write(lambda connection: add_organization(connection, organization), scope=SYSTEM)

    async def submit(
        self,
        count: int,
        organization_id: OrganizationId = ORG,
        *,
        agent: int = 1,
        lane: Lane = Lane.NORMAL,
        called: str | None = None,
    ) -> None:
        """Start runs of an agent on threads of their own, and submit them."""
        agent_number = int(organization_id[-1]) * 1_000 + agent
        agent_id = AgentId(numbered("agt", agent_number))
        if await self.stores.agents.get(organization_id, agent_id) is None:
            added = an_agent(agent_id, organization_id=organization_id, name=f"agent {agent}")
            entry = an_audit_event(agent_number, action=AuditAction.AGENT_CREATED, organization_id=organization_id)
            await self.stores.agents.add(added, entry)
        for _ in range(count):
            number = len(self.owners) + 1
            thread = a_thread(a_thread_id(number), organization_id=organization_id)
            run = replace(
                a_run(a_run_id(number), organization_id=organization_id, thread_id=thread.id, agent_id=agent_id),
                lane=lane,
            )
            self.owners[run.id] = called or organization_id
            await self.stores.runs.start(a_new_run(run, new_thread=thread))
        await self.queue.submit(*list(self.owners)[-count:])

    async def order(self, *, of: int) -> list[str]:
        """Who owns the runs, in the order in which one worker with one place is given them."""
        handler = Handler()
        consuming = consume(self.queue, handler, concurrency=1)
        await handler.until_begun(of)
        await stop(consuming)
        return [self.owners[run_id] for run_id in handler.begun[:of]]


@pytest.fixture(params=["in-process", "procrastinate"])
async def fair(request: pytest.FixtureRequest) -> AsyncIterator[FairQueue]:
    if request.param == "in-process":
        database: Database = SqliteDatabase(cast(SqliteFiles, request.getfixturevalue("sqlite_files")).fresh())
        stores = sql_stores(database)
        flows = SqlRunFlows(database=database, organizations=stores.organizations)
        async with started(database):
            yield FairQueue(queue=InProcessRunQueue(flows.of), database=database, stores=stores)
        return
    with cast(PostgresDatabases, request.getfixturevalue("postgres_databases")).fresh() as url:
        database = PostgresDatabase(url, connections=2)
        async with started(database):
            queue = ProcrastinateRunQueue(url, database=database)
            yield FairQueue(queue=queue, database=database, stores=sql_stores(database))


@asynccontextmanager
async def started(database: Database) -> AsyncIterator[None]:
    await database.start()
    try:
        yield
    finally:
        await database.stop()


@pytest.mark.requirement("K1")
async def test_a_flood_of_one_organization_does_not_hold_up_another(fair: FairQueue) -> None:
    await fair.organization(ORG)
    await fair.organization(OTHER_ORG)
    await fair.submit(30, ORG)
    await fair.submit(3, OTHER_ORG)
    order = await fair.order(of=33)
    assert order[:6].count(OTHER_ORG) == 3
    assert order.count(ORG) == 30


@pytest.mark.requirement("K1")
async def test_weights_of_organizations_are_their_shares(fair: FairQueue) -> None:
    await fair.organization(ORG, weight=3)
    await fair.organization(OTHER_ORG)
    await fair.submit(20, ORG)
    await fair.submit(20, OTHER_ORG)
    order = await fair.order(of=20)
    assert order.count(ORG) == 15


@pytest.mark.requirement("K1")
async def test_lanes_of_an_organization_are_weighted_and_none_starves(fair: FairQueue) -> None:
    await fair.organization(ORG)
    for lane in (Lane.BATCH, Lane.NORMAL, Lane.INTERACTIVE):
        await fair.submit(20, lane=lane, called=lane)
    order = await fair.order(of=26)
    assert [order.count(lane) for lane in Lane] == [18, 6, 2]


@pytest.mark.requirement("K1")
async def test_agents_share_within_their_organization_and_take_nothing_from_others(fair: FairQueue) -> None:
    for organization_id in (ORG, OTHER_ORG, THIRD_ORG):
        await fair.organization(organization_id)
    for agent in range(1, 5):
        await fair.submit(6 if agent == 1 else 3, ORG, agent=agent)
    await fair.submit(10, OTHER_ORG)
    await fair.submit(10, THIRD_ORG)
    order = await fair.order(of=12)
    assert [order.count(organization_id) for organization_id in (ORG, OTHER_ORG, THIRD_ORG)] == [4, 4, 4]


@pytest.mark.requirement("K1")
async def test_taking_a_run_reads_as_many_jobs_as_there_are_lines_however_many_wait(
    postgres: tuple[str, Database], postgres_databases: PostgresDatabases
) -> None:
    url, _ = postgres
    waiting = f"""
        INSERT INTO {SCHEMA}.procrastinate_jobs (queue_name, task_name, args)
        SELECT 'runs', 'execute_run', jsonb_build_object('run_id', 'run_' || number, 'organization_id', 'org_' || number % 10,
            'lane', 'normal', 'agent_id', 'agt_' || number % 30) FROM generate_series(1, 20000) AS number"""
    with psycopg.connect(postgres_databases.owner_url(url)) as connection:
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute(waiting.encode())
        connection.commit()
        connection.execute(f"SET LOCAL ROLE {SYSTEM_ROLE}")
        taken = connection.execute(f"SELECT run_id FROM {SCHEMA}.take_runs(NULL, '{{}}', 16)").fetchall()
        [(scanned, fetched)] = connection.execute(
            "SELECT seq_tup_read, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'procrastinate_jobs'"
        ).fetchall()
    assert len(taken) == 16
    assert (scanned, fetched < 30 * (16 + 3)) == (0, True), fetched


@pytest.mark.requirement("K1")
async def test_runs_of_one_agent_keep_their_order(fair: FairQueue) -> None:
    await fair.organization(ORG)
    for number in range(5):
        await fair.submit(1, called=str(number))
    assert await fair.order(of=5) == ["0", "1", "2", "3", "4"]
