"""Units of work while PostgreSQL is away: what waits, what is told at once, and what becomes of a
commit nobody answered."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest
from sqlalchemy import Connection, text

from domain.errors import ServiceError
from domain.runs.run import RunStatus
from infrastructure.persistence.engine.database import SYSTEM, StorageAway
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.retry_deadline import retrying_for
from tests.builders import ORG, RUN, a_thread, a_thread_id, an_agent, an_audit_event
from tests.contract.run_steps import claim, finish_step, reply_step, start, start_and_claim, stored
from tests.contract.sql_legs import sql_stores
from tests.databases import PostgresDatabases
from tests.integration.persistence.conftest import add_first_organization
from tests.integration.persistence.cut_commits import CutCommits, cut_commits
from tests.integration.persistence.units import adding, thread_numbers
from tests.stoppable_postgres import StoppablePostgres, stoppable_postgres

LONG_S = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[StoppablePostgres]:
    with stoppable_postgres() as running:
        yield running


@pytest.fixture(scope="module")
def its_databases(server: StoppablePostgres) -> Iterator[PostgresDatabases]:
    with PostgresDatabases(server.url).prepared() as databases:
        yield databases


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[PostgresDatabase]:
    database = PostgresDatabase(url, connections=3)
    await database.start()
    try:
        await database.write(add_first_organization, scope=SYSTEM)
        yield database
    finally:
        await database.stop()


@pytest.fixture
async def database(its_databases: PostgresDatabases) -> AsyncIterator[PostgresDatabase]:
    with its_databases.fresh() as url:
        async with opened(url) as running:
            yield running


@pytest.fixture
async def on_the_way(postgres_databases: PostgresDatabases) -> AsyncIterator[tuple[CutCommits, PostgresDatabase]]:
    with postgres_databases.fresh() as url, cut_commits(url) as (way, cut_url):
        async with opened(cut_url) as running:
            yield way, running


def has_thread(connection: Connection, number: int) -> bool:
    found = text("SELECT count(*) FROM thread WHERE id = :id")
    return bool(connection.execute(found, {"id": a_thread_id(number)}).scalar_one())


@pytest.mark.requirement("E6")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_request_is_told_at_once_and_served_again_when_the_database_is_back(
    mode: str, server: StoppablePostgres, database: PostgresDatabase
) -> None:
    server.stop("fast" if mode == "fast" else "immediate")
    try:
        for failing in (database.write(adding(1), scope=SYSTEM), database.read(lambda _: 1, scope=SYSTEM)):
            with pytest.raises(ServiceError) as refused:
                await failing
            assert refused.value.code == "storage_unavailable"
            assert refused.value.extra == {"retry_after_s": "1"}
    finally:
        server.start()
    assert await database.write(adding(1), scope=SYSTEM) == 1
    assert await thread_numbers(database) == [1]


@pytest.mark.requirement("E4", "E6")
async def test_what_a_run_has_in_hand_waits_for_the_database_and_happens_once(
    server: StoppablePostgres, database: PostgresDatabase
) -> None:
    server.stop("fast")
    try:
        with retrying_for(LONG_S):
            writing = asyncio.create_task(database.write(adding(1), scope=SYSTEM))
            reading = asyncio.create_task(database.read(lambda connection: has_thread(connection, 99), scope=SYSTEM))
        await asyncio.wait((writing, reading), timeout=0.5)
        assert not writing.done()
        assert not reading.done()
    finally:
        await asyncio.to_thread(server.start)
    assert await writing == 1
    assert await reading is False
    assert await thread_numbers(database) == [1]


async def test_retries_end_at_the_deadline(server: StoppablePostgres, database: PostgresDatabase) -> None:
    server.stop("fast")
    try:
        with retrying_for(0.3), pytest.raises(StorageAway):
            await database.write(adding(1), scope=SYSTEM)
    finally:
        server.start()


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_unit_whose_commit_was_cut_is_run_again_only_if_it_took_no_effect(
    cut: str, on_the_way: tuple[CutCommits, PostgresDatabase]
) -> None:
    way, database = on_the_way
    runs, told = list[int](), list[int]()

    def unit(connection: Connection) -> int:
        runs.append(1)
        return adding(1)(connection)

    setattr(way, cut, 1)
    with retrying_for(LONG_S):
        result = await database.write(unit, scope=SYSTEM, after_commit=told.append)
    assert (result, told) == (1, [1])
    assert await thread_numbers(database) == [1]
    assert len(runs) == (2 if cut == "before" else 1)


async def test_a_request_whose_commit_was_cut_learns_that_it_took_effect(
    on_the_way: tuple[CutCommits, PostgresDatabase],
) -> None:
    way, database = on_the_way
    way.after = 1
    assert await database.write(adding(1), scope=SYSTEM) == 1
    assert await thread_numbers(database) == [1]


@pytest.mark.requirement("E2", "E3", "E4")
@pytest.mark.parametrize("cut", ["before", "after"])
async def test_each_step_of_a_run_is_stored_once_though_its_commits_are_cut(
    cut: str, on_the_way: tuple[CutCommits, PostgresDatabase]
) -> None:
    way, database = on_the_way
    stores = sql_stores(database)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    with retrying_for(LONG_S):
        claimed = await start_and_claim(stores)
        setattr(way, cut, 1)
        replied = await stores.journal.commit(claimed.lease, reply_step(claimed.run))
        setattr(way, cut, 1)
        await stores.journal.commit(claimed.lease, finish_step(claimed.run))
    ended = await stored(stores, RUN)
    assert ended.status is RunStatus.COMPLETED
    events = await stores.runs.events(ORG, RUN, after_seq=0, limit=100)
    assert [event.seq for event in events] == list(range(1, ended.last_seq + 1))
    assert replied.last_seq == claimed.run.last_seq + len(reply_step(claimed.run).events)
    assert getattr(way, cut) == 0


@pytest.mark.requirement("E4")
@pytest.mark.parametrize("cut", ["before", "after"])
async def test_a_run_is_claimed_though_the_commit_of_the_claim_is_cut(
    cut: str, on_the_way: tuple[CutCommits, PostgresDatabase]
) -> None:
    way, database = on_the_way
    stores = sql_stores(database)
    await stores.agents.add(an_agent(), an_audit_event())
    await stores.threads.add(a_thread())
    started = await start(stores)
    setattr(way, cut, 1)
    with retrying_for(LONG_S):
        claimed = await claim(stores, started.run.id)
    assert claimed.run.epoch == 1
    assert (await stored(stores, RUN)).attempt == 1


@pytest.mark.requirement("E6")
async def test_a_read_of_a_locked_table_is_answered_in_bounded_time(its_databases: PostgresDatabases) -> None:
    with its_databases.fresh() as url, psycopg.connect(its_databases.owner_url(url)) as other:
        database = PostgresDatabase(url, connections=2, lock_wait_s=0.2)
        await database.start()
        try:
            other.execute("LOCK TABLE thread IN ACCESS EXCLUSIVE MODE")
            reads = [database.read(lambda connection: has_thread(connection, 1), scope=SYSTEM) for _ in range(6)]
            answers = await asyncio.wait_for(asyncio.gather(*reads, return_exceptions=True), 60)
            assert [answer.code for answer in answers if isinstance(answer, StorageAway)] == ["storage_unavailable"] * 6
            with retrying_for(LONG_S):
                waiting = asyncio.create_task(database.read(lambda connection: has_thread(connection, 1), scope=SYSTEM))
            await asyncio.wait((waiting,), timeout=0.5)
            assert not waiting.done(), "what a run has in hand waits longer"
            other.rollback()
            assert await waiting is False
        finally:
            await database.stop()
