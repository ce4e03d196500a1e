"""What only the queue of many processes does: its jobs are rows, stored with the runs they ring
for, and outlive consumers."""

import asyncio

import psycopg
import pytest
from sqlalchemy import Connection

from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.runs.run import MultitaskStrategy
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue, submit_runs
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.queue_install import installed_library_schema
from infrastructure.persistence.engine.postgres.queue_schema import LIBRARY_SCHEMA, SCHEMA
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE
from infrastructure.persistence.identity.store import add_organization
from infrastructure.persistence.runs.store import SqlRunStore
from tests.builders import ORG, a_new_run, a_run, a_run_id, a_thread, an_agent, an_audit_event, an_organization
from tests.contract.queue_consumers import Handler, consume, stop
from tests.contract.sql_legs import MirrorBox, sql_stores
from tests.databases import PostgresDatabases


@pytest.fixture(autouse=True)
def unhurried_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that leaves has the time to report what has ended."""
    monkeypatch.setattr("infrastructure.jobs.procrastinate_queue._LEAVE_S", 60.0)


def waiting_jobs(url: str) -> list[str]:
    """The runs that wait to be fetched, as the database has them."""
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}")
        found = connection.execute(f"SELECT args->>'run_id', lock, queueing_lock FROM {SCHEMA}.procrastinate_jobs")
        rows = found.fetchall()
    assert all(lock is None and queueing_lock is None for _, lock, queueing_lock in rows)
    return [run_id for run_id, _, _ in rows]


@pytest.mark.requirement("E6", "K4")
async def test_two_consumers_share_what_is_submitted(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queues = [ProcrastinateRunQueue(url, database=database) for _ in range(2)]
    handler = Handler(held=True)
    consuming = [consume(queue, handler, concurrency=1) for queue in queues]
    await queues[0].submit(*(a_run_id(number) for number in range(4)))
    await handler.until_begun(2)
    handler.go_on.set()
    await handler.until_finished(4)
    assert sorted(handler.finished) == [a_run_id(number) for number in range(4)]
    for task in consuming:
        await stop(task)


@pytest.mark.requirement("E6")
async def test_a_waiting_run_is_queued_once_however_often_it_is_rung_for(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    await queue.submit(a_run_id(1), a_run_id(2))
    await queue.submit(a_run_id(2), a_run_id(3))
    await queue.submit()
    assert sorted(waiting_jobs(url)) == [a_run_id(1), a_run_id(2), a_run_id(3)]


@pytest.mark.requirement("E6")
async def test_a_run_rung_for_in_a_transaction_that_fails_is_not_queued(postgres: tuple[str, Database]) -> None:
    url, database = postgres

    def ring_and_fail(connection: Connection) -> None:
        submit_runs(connection, [a_run_id(1)])
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(ring_and_fail, scope=ORG)
    assert waiting_jobs(url) == []
    await database.write(lambda connection: submit_runs(connection, [a_run_id(2)]), scope=ORG)
    assert waiting_jobs(url) == [a_run_id(2)]


@pytest.mark.requirement("E6")
async def test_starting_a_run_tells_the_queue_in_the_same_transaction(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    await database.write(lambda connection: add_organization(connection, an_organization(ORG)), scope=SYSTEM)
    stores = sql_stores(database)
    await stores.agents.add(an_agent(), an_audit_event(action=AuditAction.AGENT_CREATED))
    await stores.threads.add(a_thread())
    runs = SqlRunStore(database=database, wakeups=InProcessWakeups(), box=MirrorBox(), submit=submit_runs)
    started = await runs.start(a_new_run())
    assert (started.created, started.submitted, started.to_submit) == (True, True, ())
    assert waiting_jobs(url) == [started.run.id]
    with pytest.raises(ServiceError):
        await runs.start(a_new_run(a_run(a_run_id(2)), strategy=MultitaskStrategy.REJECT))
    assert waiting_jobs(url) == [started.run.id]


async def test_handled_runs_leave_nothing_behind(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    handler = Handler()
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_finished(1)
    assert await queue.drain(60)
    await consuming
    assert waiting_jobs(url) == []


@pytest.mark.requirement("E4")
async def test_runs_in_hand_survive_a_severed_connection_and_new_ones_are_fetched(
    postgres: tuple[str, Database],
) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    handler = Handler(held=True)
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'dragoman-queue'"
        )
    await queue.submit(a_run_id(2))
    await handler.until_begun(2)
    handler.go_on.set()
    await handler.until_finished(2)
    assert handler.cancelled == []
    assert handler.begun == [a_run_id(1), a_run_id(2)]
    await stop(consuming)


async def test_what_a_vanished_consumer_had_fetched_is_forgotten(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    await queue.submit(a_run_id(1))
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}")
        connection.execute(f"SET search_path TO {SCHEMA}")
        connection.execute("UPDATE procrastinate_jobs SET status = 'doing'")
    await queue.submit(a_run_id(1))
    assert waiting_jobs(url) == [a_run_id(1), a_run_id(1)], "its job does not stand in the way of another one"
    handler = Handler()
    consuming = consume(queue, handler)
    await handler.until_finished(1)
    assert await queue.drain(60)
    await consuming
    assert handler.finished == [a_run_id(1)]
    assert waiting_jobs(url) == []


@pytest.mark.requirement("E6")
async def test_every_run_is_rung_for_although_nobody_looks_for_runs_by_himself(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database, look_every_s=3600)
    handler = Handler()
    consuming = consume(queue, handler, concurrency=2)
    await queue.submit(a_run_id(0))
    await handler.until_begun(1)
    # Each follows on the heels of the one before, while the consumer asks for more and gets none.
    for number in range(1, 200):
        await queue.submit(a_run_id(number))
        await handler.until_begun(number + 1)
    assert await queue.drain(60)
    await consuming
    assert handler.finished == [a_run_id(number) for number in range(200)]


@pytest.mark.requirement("E6")
async def test_what_is_submitted_while_the_listening_connection_is_away_is_fetched(
    postgres: tuple[str, Database],
) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database, look_every_s=3600)
    handler = Handler()
    consuming = consume(queue, handler)
    for number in range(5):
        await queue.submit(a_run_id(number))
        await handler.until_begun(number + 1)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
            )
    assert sorted(handler.begun) == [a_run_id(number) for number in range(5)]
    await stop(consuming)


@pytest.mark.requirement("E4")
async def test_a_consumer_that_the_others_took_for_gone_registers_anew(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    handler = Handler()
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_finished(1)
    with psycopg.connect(url) as connection:
        connection.execute(f"SET ROLE {SYSTEM_ROLE}")
        connection.execute(f"DELETE FROM {SCHEMA}.procrastinate_workers")
    await queue.submit(a_run_id(2))
    await handler.until_finished(2)
    assert await queue.drain(60)
    await consuming
    assert waiting_jobs(url) == []


@pytest.mark.requirement("E7")
async def test_a_run_in_hand_that_is_rung_for_while_draining_is_left_to_somebody_else(
    postgres: tuple[str, Database],
) -> None:
    url, database = postgres
    queue = ProcrastinateRunQueue(url, database=database)
    handler = Handler(held=True)
    consuming = consume(queue, handler)
    await queue.submit(a_run_id(1))
    await handler.until_begun(1)
    await queue.submit(a_run_id(1))
    assert not await queue.drain(0)
    handler.go_on.set()
    assert await queue.drain(60)
    await consuming
    assert handler.finished == [a_run_id(1)]
    assert waiting_jobs(url) == [a_run_id(1)], "and the job of the handled one is gone"


def test_the_queue_s_schema_is_the_installed_library_s() -> None:
    assert installed_library_schema() == LIBRARY_SCHEMA


@pytest.mark.requirement("E6", "G2")
async def test_a_consumer_whose_connections_are_ended_attends_again(
    postgres: tuple[str, Database], postgres_databases: PostgresDatabases
) -> None:
    url, database = postgres
    queue, handler = ProcrastinateRunQueue(url, database=database, look_every_s=600.0), Handler()
    consuming = consume(queue, handler)
    await queue.until_attended()
    postgres_databases.end_sessions()
    while queue.attended:  # noqa: ASYNC110 - nobody tells of it
        await asyncio.sleep(0)
    await queue.until_attended()
    await queue.submit(a_run_id(1))
    await handler.until_finished(1)
    await stop(consuming)
