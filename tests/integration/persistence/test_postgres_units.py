"""What is special about units of work on PostgreSQL."""

import asyncio
import threading

import psycopg
import pytest
from psycopg.errors import AdminShutdown
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.prepared import pipelined
from infrastructure.persistence.threads.rows import add_thread
from tests.builders import ORG, OTHER_ORG, a_thread, a_thread_id
from tests.databases import PostgresDatabases
from tests.integration.persistence.units import Gate, adding, thread_numbers


def updating(first: int, second: int, meeting: threading.Barrier, runs: list[int]) -> "object":
    """Touches two threads in this order, meeting the other unit in between the first time."""

    def unit(connection: Connection) -> None:
        touch = text("UPDATE thread SET metadata = '{}' WHERE id = :id")
        runs.append(first)
        connection.execute(touch, {"id": f"thr_{first:026d}"})
        if runs.count(first) == 1:
            meeting.wait(60)
        connection.execute(touch, {"id": f"thr_{second:026d}"})

    return unit


def backend(connection: Connection) -> int:
    return int(connection.execute(text("SELECT pg_backend_pid()")).scalar_one())


async def test_the_victim_of_a_deadlock_runs_again(postgres: PostgresDatabase) -> None:
    for number in (1, 2):
        await postgres.write(adding(number), scope=SYSTEM)
    meeting, runs = threading.Barrier(2), list[int]()
    one, two = updating(1, 2, meeting, runs), updating(2, 1, meeting, runs)
    assert callable(one)
    assert callable(two)
    await asyncio.gather(postgres.write(one, scope=SYSTEM), postgres.write(two, scope=SYSTEM))
    # The one that runs again may meet the other once more before that has gone on.
    assert len(runs) > 2


async def test_a_connection_the_server_closed_is_replaced(postgres: PostgresDatabase) -> None:
    attempts: list[int] = []

    def unit(connection: Connection) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            # Only as the one who logged in may it end itself.
            connection.execute(text("RESET ROLE"))
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return adding(1)(connection)

    assert await postgres.write(unit, scope=SYSTEM) == 1
    assert await thread_numbers(postgres) == [1]
    assert len(attempts) == 2


async def test_connections_the_server_closed_between_units_are_replaced(
    postgres: PostgresDatabase, postgres_databases: PostgresDatabases
) -> None:
    first = await postgres.read(backend, scope=SYSTEM)
    postgres_databases.end_sessions()
    assert await postgres.write(adding(1), scope=SYSTEM) == 1
    assert await postgres.read(backend, scope=SYSTEM) != first


async def test_no_more_units_run_at_once_than_there_are_connections(postgres: PostgresDatabase) -> None:
    gates = [Gate() for _ in range(6)]
    holders = [asyncio.create_task(postgres.write(gate.unit, scope=SYSTEM)) for gate in gates]
    for gate in gates:
        await asyncio.to_thread(gate.wait_begun)
    leaving = asyncio.create_task(postgres.write(adding(1), scope=SYSTEM))
    staying = asyncio.create_task(postgres.write(adding(2), scope=SYSTEM))
    await asyncio.sleep(0)
    assert not staying.done()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    for gate in gates:
        gate.open()
    await asyncio.gather(*holders, staying)
    assert await thread_numbers(postgres) == [2]


async def test_one_of_several_statements_sent_together_fails_with_its_own_error_and_undoes_all(
    postgres: PostgresDatabase,
) -> None:
    await postgres.write(adding(2), scope=SYSTEM)

    def unit(connection: Connection) -> None:
        with pipelined(connection):
            for number in (1, 2, 3):
                adding(number)(connection)

    with pytest.raises(IntegrityError) as raised:
        await postgres.write(unit, scope=SYSTEM)
    assert getattr(raised.value.orig, "sqlstate", None) == "23505"
    assert await postgres.write(adding(4), scope=SYSTEM) == 4
    assert await thread_numbers(postgres) == [2, 4]


async def test_statements_sent_together_reach_no_other_organization(postgres: PostgresDatabase) -> None:
    def unit(connection: Connection) -> None:
        with pipelined(connection):
            add_thread(connection, a_thread(a_thread_id(1)))
            add_thread(connection, a_thread(a_thread_id(2), organization_id=OTHER_ORG))

    # Refused for good, as the log says: the policy of rows.
    with pytest.raises(Exception, match="refused") as raised:
        await postgres.write(unit, scope=ORG)
    cause = raised.value.__cause__
    assert isinstance(cause, DBAPIError)
    assert getattr(cause.orig, "sqlstate", None) == "42501"
    assert await thread_numbers(postgres) == []


async def test_a_connection_cut_amid_statements_sent_together_is_replaced(postgres: PostgresDatabase) -> None:
    attempts: list[int] = []

    def unit(connection: Connection) -> None:
        attempts.append(1)
        with pipelined(connection):
            adding(1)(connection)
            if len(attempts) == 1:
                connection.execute(text("RESET ROLE"))
                connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
            adding(2)(connection)

    await postgres.write(unit, scope=SYSTEM)
    assert await thread_numbers(postgres) == [1, 2]
    assert len(attempts) == 2


async def test_the_server_saying_that_it_ends_the_session_is_enough_to_replace_the_connection(
    postgres: PostgresDatabase,
) -> None:
    attempts: list[int] = []

    def unit(connection: Connection) -> int:
        attempts.append(1)
        if len(attempts) == 1:
            raw = connection.connection.driver_connection
            assert isinstance(raw, psycopg.Connection)
            raw.execute("RESET ROLE")
            try:
                raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")
            except AdminShutdown as error:
                # As it is raised where the end of the socket has not been read yet.
                raise DBAPIError(None, None, error, connection_invalidated=False) from error
        return adding(1)(connection)

    assert await postgres.write(unit, scope=SYSTEM) == 1
    assert len(attempts) == 2
