"""Starts beyond the bound of the queue: what they cost others."""

from dataclasses import replace

import psycopg
import pytest
from pytest_mock import MockerFixture
from sqlalchemy import Connection, text

from domain.errors import ServiceError
from domain.runs.admission import Admission
from domain.runs.run import MultitaskStrategy
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.runs.admission import admit, lock_running
from tests.builders import ORG, a_new_run, a_run, a_run_id, a_thread, a_thread_id
from tests.contract.stores import Stores
from tests.databases import PostgresDatabases
from tests.refusals import refused


@pytest.mark.requirement("K2")
async def test_a_start_for_which_there_is_no_place_does_not_reach_the_writers(
    database: Database, stores: Stores, mocker: MockerFixture
) -> None:
    of_one = Admission(organization=1)
    await stores.runs.start(replace(a_new_run(a_run()), admission=of_one))
    written = mocker.spy(database, "write")
    thread = a_thread(a_thread_id(2))
    on_new_thread = a_new_run(a_run(a_run_id(2), thread_id=thread.id), new_thread=thread)
    for new in (on_new_thread, a_new_run(a_run(a_run_id(3)))):
        with pytest.raises(ServiceError) as full:
            await stores.runs.start(replace(new, admission=of_one))
        assert full.value.code == "queue_full"
    written.assert_not_called()


@pytest.mark.requirement("K2")
async def test_a_start_that_stops_the_waiting_run_of_its_thread_has_its_place(stores: Stores) -> None:
    of_one = Admission(organization=1)
    await stores.runs.start(replace(a_new_run(a_run()), admission=of_one))
    instead = replace(
        a_new_run(a_run(a_run_id(2))), admission=of_one, strategy=MultitaskStrategy.INTERRUPT, may_stop_any=True
    )
    assert (await stores.runs.start(instead)).created


@pytest.mark.requirement("K2")
async def test_the_bound_is_exact_where_the_server_gives_each_transaction_one_snapshot(
    postgres_databases: PostgresDatabases,
) -> None:
    def level(connection: Connection) -> str:
        return str(connection.execute(text("SHOW transaction_isolation")).scalar_one())

    with postgres_databases.fresh() as url:
        joined = "&" if "?" in url else "?"
        database = PostgresDatabase(f"{url}{joined}options=-c%20default_transaction_isolation%3Dserializable")
        await database.start()
        try:
            assert await database.write(level, scope=SYSTEM) == "read committed"
        finally:
            await database.stop()


@pytest.mark.requirement("K2")
@pytest.mark.parametrize("whose", ["start", "claim"])
async def test_a_process_that_stands_still_with_a_lock_of_a_bound_holds_up_others_for_some_seconds_only(
    postgres_databases: PostgresDatabases, whose: str
) -> None:
    new = replace(a_new_run(a_run()), admission=Admission(organization=1))

    def lock(connection: Connection) -> None:
        admit(connection, new) if whose == "start" else lock_running(connection)

    def settings(connection: Connection) -> list[str]:
        lock(connection)
        names = ("lock_timeout", "idle_in_transaction_session_timeout")
        return [str(connection.execute(text(f"SHOW {name}")).scalar_one()) for name in names]

    def impatient(connection: Connection) -> None:
        connection.execute(text("SET LOCAL lock_timeout = '10ms'"))
        lock(connection)

    with postgres_databases.fresh() as url:
        database = PostgresDatabase(url)
        await database.start()
        key = f"hashtext('admission'), hashtext('{ORG}')" if whose == "start" else "hashtext('running')"
        try:
            assert await database.write(settings, scope=SYSTEM) == ["5s", "5s"]
            with psycopg.connect(url) as standing:
                standing.execute(f"SELECT pg_advisory_xact_lock({key})".encode())
                with refused("storage_unavailable"):
                    await database.write(impatient, scope=SYSTEM)
        finally:
            await database.stop()
