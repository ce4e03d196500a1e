"""The order in which queues hand out runs: the same in one process and over many."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import cast

import psycopg
import pytest
from sqlalchemy import text

from domain.audit.event import AuditAction
from domain.identity.organization import Organization
from domain.ids import AgentId, OrganizationId, RunId
from domain.runs.lane import RUN_COST, Lane
from domain.runs.run import RunStatus
from domain.runs.stopping import Cancellation
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue
from infrastructure.jobs.run_flows import SqlRunFlows
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.postgres.queue_install import install_queue
from infrastructure.persistence.engine.postgres.queue_schema import LIBRARY_SCHEMA, SCHEMA
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.identity.store import add_organization
from infrastructure.persistence.runs.store import SqlRunStore
from infrastructure.persistence.schema.revision import plain_engine
from tests.builders import (
    ORG,
    OTHER_ORG,
    a_new_run,
    a_run,
    a_run_id,
    a_thread,
    a_thread_id,
    after,
    an_agent,
    an_audit_event,
    an_organization,
    numbered,
)
from tests.contract.queue_consumers import ConsumedQueue, Handler, consume, stop
from tests.contract.sql_legs import MirrorBox, sql_stores
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

    async def organization(self, id: OrganizationId, *, weight: int = 1, max_running: int | None = None) -> None:
        organization: Organization = replace(an_organization(id), queue_weight=weight, max_running=max_running)
        await self.database.write(lambda connection: add_organization(connection, organization), scope=SYSTEM)

    async def submit(
        self,
        count: int,
        organization_id: OrganizationId = ORG,
        *,
        agent: int = 1,
        lane: Lane = Lane.NORMAL,
        called: str | None = None,
        max_running: int | None = None,
    ) -> None:
        """Start runs of an agent on threads of their own, and submit them. `max_running` is that of
        a new agent."""
        agent_number = int(organization_id[-1]) * 1_000 + agent
        agent_id = AgentId(numbered("agt", agent_number))
        if await self.stores.agents.get(organization_id, agent_id) is None:
            added = an_agent(agent_id, organization_id=organization_id, name=f"agent {agent}")
            added = replace(added, config=replace(added.config, max_running=max_running))
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

    async def cancel(self, organization_id: OrganizationId) -> None:
        """Cancel all runs of an organization."""
        for run_id, owner in self.owners.items():
            if owner == organization_id:
                changed = await self.stores.runs.change(
                    organization_id, run_id, Cancellation(actor="somebody", at=after(1)).decide
                )
                assert changed is not None
                assert changed.run.status is RunStatus.CANCELLED

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
        flows = SqlRunFlows(database=database, organizations=stores.organizations, agents=stores.agents)
        async with started(database):
            queue = InProcessRunQueue(flows.of)
            runs = SqlRunStore(database=database, wakeups=InProcessWakeups(), box=MirrorBox(), withdraw=queue.discard)
            yield FairQueue(queue=queue, database=database, stores=replace(stores, runs=runs))
        return
    with cast(PostgresDatabases, request.getfixturevalue("postgres_databases")).fresh() as url:
        database = PostgresDatabase(url, connections=2)
        async with started(database):
            yield FairQueue(
                queue=ProcrastinateRunQueue(url, database=database), database=database, stores=sql_stores(database)
            )


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
async def test_a_full_worker_has_a_spare_place_for_each_organization_without_runs_there(fair: FairQueue) -> None:
    for organization_id in (ORG, OTHER_ORG, THIRD_ORG):
        await fair.organization(organization_id)
    await fair.submit(20, ORG)
    handler = Handler(held=True)
    consuming = consume(fair.queue, handler, concurrency=8)
    await handler.until_begun(8)
    await fair.submit(2, OTHER_ORG)
    await fair.submit(2, THIRD_ORG)
    await handler.until_begun(10)
    assert [fair.owners[run_id] for run_id in handler.begun] == [ORG] * 8 + [OTHER_ORG, THIRD_ORG]
    handler.go_on.set()
    await handler.until_finished(24)
    await stop(consuming)
    assert handler.most_at_once == 10


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
async def test_cancelled_runs_cost_their_organization_nothing(fair: FairQueue) -> None:
    await fair.organization(ORG)
    await fair.organization(OTHER_ORG)
    await fair.submit(10, ORG)
    await fair.cancel(ORG)
    await fair.submit(10, OTHER_ORG)
    await fair.submit(1, ORG, called="started after all")
    assert "started after all" in (await fair.order(of=11))[:2]


@pytest.mark.requirement("K1")
async def test_a_run_that_waits_in_a_lane_of_newer_code_waits_in_the_default_lane(
    sqlite_files: SqliteFiles, caplog: pytest.LogCaptureFixture
) -> None:
    database = SqliteDatabase(sqlite_files.fresh())
    stores = sql_stores(database)
    async with started(database):
        flows = SqlRunFlows(database=database, organizations=stores.organizations, agents=stores.agents)
        fair = FairQueue(queue=InProcessRunQueue(flows.of), database=database, stores=stores)
        await fair.organization(ORG)
        await fair.submit(2)
        await database.write(
            lambda connection: connection.execute(text("UPDATE run SET lane = 'express'")), scope=SYSTEM
        )
        assert await fair.order(of=2) == [ORG, ORG]
    assert [record.levelname for record in caplog.records if "lane" in record.message] == ["WARNING", "WARNING"]


def decide(url: str, statement: str, *, wait: bool = True) -> list[tuple[object, ...]]:
    """The answer to a statement in the queue's schema, as a consumer."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"SET search_path TO {SCHEMA}; SET ROLE {SYSTEM_ROLE}; SET lock_timeout = {0 if wait else 1}"
        )
        return connection.execute(statement.encode()).fetchall()


@pytest.mark.requirement("K1")
async def test_shares_without_waiting_runs_are_forgotten(postgres: tuple[str, Database]) -> None:
    url, _ = postgres
    decide(
        url,
        """
        WITH shares (name, finish, virtual) AS (VALUES
            ('*', 0, 10), ('busy', 20, 5), ('busy/normal', 9, 5), ('busy/normal/a', 9, 0), ('busy/normal/b', 4, 0),
            ('busy/normal/c', 9, 0), ('busy/batch', 3, 0), ('busy/batch/d', 9, 0), ('ahead', 15, 5), ('ahead/normal', 7, 5),
            ('idle', 10, 5)
        ), added AS (INSERT INTO dragoman_share SELECT * FROM shares)
        INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('runs', 'execute_run',
            '{"run_id": "run_1", "organization_id": "busy", "lane": "normal", "agent_id": "a"}') RETURNING id""",
    )
    decide(url, "SELECT tidy_shares()")
    kept = {name for (name,) in decide(url, "SELECT name FROM dragoman_share")}
    assert kept == {"*", "busy", "busy/normal", "busy/normal/a", "busy/normal/c", "ahead"}


@pytest.mark.requirement("K1")
async def test_a_look_at_an_empty_queue_waits_for_no_other_consumer(postgres: tuple[str, Database]) -> None:
    url, _ = postgres
    with psycopg.connect(url) as deciding:
        deciding.execute("SELECT pg_advisory_xact_lock(hashtext('dragoman_share'))")
        assert decide(url, "SELECT run_id FROM take_runs(NULL, '{}', 4)", wait=False) == []


@pytest.mark.requirement("K1")
async def test_a_job_that_is_being_withdrawn_is_neither_taken_nor_waited_for(postgres: tuple[str, Database]) -> None:
    url, _ = postgres
    decide(
        url,
        """INSERT INTO procrastinate_jobs (queue_name, task_name, args) SELECT 'runs', 'execute_run',
            jsonb_build_object('run_id', 'run_' || number) FROM generate_series(1, 2) AS number RETURNING id""",
    )
    with psycopg.connect(url) as cancelling:
        cancelling.execute(f"SET search_path TO {SCHEMA}; SET ROLE {SYSTEM_ROLE}")
        cancelling.execute("DELETE FROM procrastinate_jobs WHERE args->>'run_id' = 'run_1'")
        assert decide(url, "SELECT run_id FROM take_runs(NULL, '{}', 4)", wait=False) == [("run_2",)]
    [(finish,)] = decide(url, "SELECT finish FROM dragoman_share WHERE name = '//'")
    assert finish == 2 * RUN_COST


@pytest.mark.requirement("K1")
async def test_a_spare_place_costs_two_turns_at_most_and_is_for_one_run(postgres: tuple[str, Database]) -> None:
    url, _ = postgres
    jobs = """INSERT INTO procrastinate_jobs (queue_name, task_name, args) SELECT 'runs', 'execute_run', jsonb_build_object(
        'run_id', 'run_' || number, 'organization_id', CASE WHEN number <= 20 THEN 'flood' ELSE 'other' END
    ) FROM generate_series(1, 40) AS number RETURNING id"""
    decide(url, jobs)
    [(worker,)] = decide(url, "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id")
    assert len(decide(url, f"SELECT run_id FROM take_runs({worker}, '{{}}', 1)")) == 1
    ended: object = "NULL"
    for number in range(21, 25):
        [(ended, run_id)] = decide(url, f"SELECT * FROM take_runs({worker}, ARRAY[{ended}]::bigint[], 0, 1)")
        assert run_id == f"run_{number}"
    assert decide(url, f"SELECT * FROM take_runs({worker}, '{{}}', 0, 1)") == []
    tags = decide(url, "SELECT name, finish FROM dragoman_share WHERE name IN ('flood', 'other') ORDER BY name")
    assert tags == [("flood", RUN_COST), ("other", 2 * RUN_COST)]


@pytest.mark.requirement("K1")
async def test_jobs_of_the_version_before_get_their_flows(
    postgres: tuple[str, Database], postgres_databases: PostgresDatabases
) -> None:
    url, database = postgres
    fair = FairQueue(
        queue=ProcrastinateRunQueue(url, database=database), database=database, stores=sql_stores(database)
    )
    await fair.organization(ORG)
    await fair.organization(OTHER_ORG)
    await fair.submit(10, ORG)
    await fair.submit(1, OTHER_ORG)
    decide(url, "UPDATE procrastinate_jobs SET args = jsonb_build_object('run_id', args->'run_id') RETURNING id")
    engine = plain_engine(postgres_databases.owner_url(url))
    with engine.begin() as connection:
        connection.execute(text(f"COMMENT ON SCHEMA {SCHEMA} IS '{LIBRARY_SCHEMA}/3'"))
        install_queue(connection)
    engine.dispose()
    assert OTHER_ORG in (await fair.order(of=11))[:2]


@pytest.mark.requirement("K1")
async def test_a_process_of_the_version_before_submits_runs_with_their_flows(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    fair = FairQueue(queue=InProcessRunQueue(), database=database, stores=sql_stores(database))
    await fair.organization(ORG)
    await fair.submit(1, ORG)
    [run_id] = fair.owners
    submitting = text(f"SELECT {SCHEMA}.submit_runs(CAST(:run_ids AS text[]))")
    await database.write(lambda connection: connection.execute(submitting, {"run_ids": [run_id]}).all(), scope=ORG)
    assert decide(url, "SELECT args->>'organization_id' FROM procrastinate_jobs") == [(ORG,)]


@pytest.mark.requirement("K1")
async def test_runs_of_one_agent_keep_their_order(fair: FairQueue) -> None:
    await fair.organization(ORG)
    for number in range(5):
        await fair.submit(1, called=str(number))
    assert await fair.order(of=5) == ["0", "1", "2", "3", "4"]


@pytest.mark.requirement("K2")
async def test_runs_beyond_the_bound_of_their_organization_or_agent_wait_and_others_pass_them(fair: FairQueue) -> None:
    await fair.organization(ORG, max_running=3)
    await fair.organization(OTHER_ORG)
    await fair.submit(5, ORG, called="bounded agent", max_running=1)
    await fair.submit(2, ORG, agent=2, lane=Lane.BATCH, called="other agent")
    await fair.submit(2, ORG, agent=3, called="third agent")
    await fair.submit(4, OTHER_ORG)
    handler = Handler(held=True)
    consuming = consume(fair.queue, handler, concurrency=16)
    await handler.until_begun(7)
    assert sorted(fair.owners[run_id] for run_id in handler.begun) == sorted(
        [OTHER_ORG] * 4 + ["bounded agent", "other agent", "third agent"]
    )
    handler.go_on.set()
    await handler.until_finished(13)
    await stop(consuming)
    assert len(set(handler.finished)) == 13


@pytest.mark.requirement("K2")
async def test_a_raised_bound_holds_for_runs_that_wait_already(fair: FairQueue) -> None:
    await fair.organization(ORG, max_running=1)
    await fair.submit(3, ORG)
    handler = Handler(held=True)
    consuming = consume(fair.queue, handler, concurrency=16)
    await handler.until_begun(1)
    stored = await fair.stores.organizations.get(ORG)
    assert stored is not None
    raised = replace(stored, version=stored.version + 1, max_running=3)
    await fair.stores.organizations.save(raised, expected_version=stored.version, audit=())
    await fair.queue.submit(*fair.owners)  # as run recovery does
    await handler.until_begun(3)
    handler.go_on.set()
    await handler.until_finished(3)
    await stop(consuming)


@pytest.mark.requirement("K2")
async def test_two_workers_take_no_more_runs_together_than_may_be_in_progress(
    postgres: tuple[str, Database],
) -> None:
    url, database = postgres
    one, other = (ProcrastinateRunQueue(url, database=database) for _ in range(2))
    fair = FairQueue(queue=one, database=database, stores=sql_stores(database))
    await fair.organization(ORG, max_running=4)
    await fair.organization(OTHER_ORG)
    await fair.submit(20, ORG)
    await fair.submit(4, OTHER_ORG)
    handler = Handler(held=True)
    consuming = [consume(queue, handler, concurrency=16) for queue in (one, other)]
    await handler.until_begun(8)
    assert [fair.owners[run_id] for run_id in handler.begun].count(ORG) == 4
    assert decide(url, "SELECT run_id FROM take_runs(NULL, '{}', 16)") == []
    handler.go_on.set()
    await handler.until_finished(24)
    for task in consuming:
        await stop(task)
