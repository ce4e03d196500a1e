"""Groups of units whose connection ends at an inconvenient place: each unit is told what became of
it, on either event loop."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import uvloop
from psycopg import OperationalError
from sqlalchemy import Connection, text

from infrastructure.persistence.engine.database import SYSTEM
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.prepared import Prepared, prepared_insert
from infrastructure.persistence.engine.staged import Staged, Stages
from infrastructure.persistence.tables import idempotency_key
from infrastructure.persistence.threads.rows import add_thread
from infrastructure.postgres.pipeline import Pipeline
from tests.builders import ORG, START, a_thread, a_thread_id
from tests.databases import PostgresDatabases
from tests.integration.persistence.conftest import add_first_organization
from tests.integration.persistence.units import thread_numbers

LONG_S = 60.0

_busy = Prepared(text("SELECT CAST(pg_sleep(600) AS text)"))
_length = Prepared(text("SELECT length(CAST(:long AS text))"))
_key = prepared_insert(idempotency_key)

Loop = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Loop:
    """That of the tests, and that of the service."""
    factory: Loop = request.param
    return factory


@pytest.mark.requirement("E4", "E6")
def test_a_group_is_stored_though_its_server_went_with_statements_unread(
    loop_factory: Loop, postgres_databases: PostgresDatabases
) -> None:
    """The server's socket says then that it failed, with the server's last words still in it: libuv
    reports that once."""
    ended: list[None] = []

    def begin(connection: Connection) -> Stages[str]:
        if not ended:
            ended.append(None)
            _busy.ask(connection, {})
            _length.ask(connection, {"long": "x" * 50_000})
            # Once all is sent; nothing of what follows is heard of before the server has gone.
            asyncio.get_running_loop().call_soon(lambda: postgres_databases.end_sessions(wait_s=LONG_S))
        yield
        add_thread(connection, a_thread(a_thread_id(1)))
        return "added"

    async def story() -> None:
        with postgres_databases.fresh() as url:
            database = PostgresDatabase(url, connections=2)
            await database.start()
            await database.write(add_first_organization, scope=SYSTEM)
            assert await asyncio.wait_for(database.write(Staged(begin), scope=ORG), LONG_S) == "added"
            assert await thread_numbers(database) == [1]
            await database.stop()

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(story())


async def test_a_session_that_the_server_ends_while_nothing_is_asked_is_an_error_of_the_database(
    postgres_databases: PostgresDatabases,
) -> None:
    with postgres_databases.fresh() as url:
        pipeline = await Pipeline.open(url, {})
        postgres_databases.end_sessions(wait_s=60)
        with pytest.raises(OperationalError):
            await pipeline.answered()
        assert pipeline.lost
        await pipeline.close()


async def test_what_the_server_refuses_to_commit_is_not_told_for_a_caller_that_has_gone(
    postgres: PostgresDatabase,
) -> None:
    begun, told = asyncio.Event(), list[str]()

    def begin(connection: Connection) -> Stages[str]:
        begun.set()
        key = {"organization_id": ORG, "key": "k", "body_digest": "d", "run_id": "run_none", "created_at": START}
        _key.run(connection, key)  # refused at the end, as there is no such run
        yield
        return "kept"

    caller = asyncio.create_task(postgres.write(Staged(begin), scope=ORG, after_commit=told.append))
    await asyncio.wait_for(begun.wait(), LONG_S)
    caller.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await caller
    await postgres.stop()
    await asyncio.sleep(0)  # what the threads say last
    assert told == []
    await postgres.start()
