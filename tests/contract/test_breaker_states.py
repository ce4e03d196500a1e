"""The contract of circuit breakers that processes share, in memory and over both databases; and how
fast others hear of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import cast

import pytest

from domain.ids import McpServerId
from infrastructure.events.postgres_wakeups import PostgresWakeups
from infrastructure.events.row_notifications import RowNotifications
from infrastructure.mcp.wrappers.shared_breakers import BreakerStates, OpenBreaker, SharedBreakers
from infrastructure.persistence.engine.database import Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.limits.breaker_states import SqlBreakerStates
from tests.builders import SERVER
from tests.contract.patient_wakeups import patient, until_fresh
from tests.databases import PostgresDatabases, SqliteFiles
from tests.doubles.breaker_states import InMemoryBreakerStates
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("K3")

OTHER = McpServerId("mcp_other")
HOUR_S = 3_600.0


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def states(request: pytest.FixtureRequest) -> AsyncIterator[BreakerStates]:
    if request.param == "memory":
        yield InMemoryBreakerStates(FixedClock())
        return
    with ExitStack() as stack:
        if request.param == "sqlite":
            database: Database = SqliteDatabase(cast(SqliteFiles, request.getfixturevalue("sqlite_files")).fresh())
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            database = PostgresDatabase(stack.enter_context(databases.fresh()), connections=4)
        await database.start()
        yield SqlBreakerStates(database=database)
        await database.stop()


async def test_an_open_breaker_is_read_with_what_is_left_of_its_pause_until_it_closes(states: BreakerStates) -> None:
    assert await states.of(SERVER) is None
    await states.opened(SERVER, OpenBreaker(openings=1, pause_s=10))
    await states.opened(SERVER, OpenBreaker(openings=2, pause_s=HOUR_S))
    breaker = await states.of(SERVER)
    assert breaker is not None
    assert breaker.openings == 2
    assert breaker.pause_s == pytest.approx(HOUR_S, abs=120)
    assert await states.of(OTHER) is None
    await states.closed(SERVER)
    assert await states.of(SERVER) is None


async def test_one_process_probes_and_no_other_while_it_may(states: BreakerStates) -> None:
    await states.opened(SERVER, OpenBreaker(openings=1, pause_s=HOUR_S))
    assert not await states.probe(SERVER, HOUR_S)
    await states.opened(SERVER, OpenBreaker(openings=1, pause_s=0))
    may = await asyncio.gather(*(states.probe(SERVER, HOUR_S) for _ in range(5)))
    assert sorted(may) == [False] * 4 + [True]
    breaker = await states.of(SERVER)
    assert breaker is not None
    assert breaker.pause_s == pytest.approx(HOUR_S, abs=120)


async def test_a_breaker_that_is_closed_hinders_no_probe(states: BreakerStates) -> None:
    assert await states.probe(SERVER, HOUR_S)
    assert await states.of(SERVER) is None


async def test_another_process_hears_of_an_open_breaker_and_of_its_end(postgres: tuple[str, Database]) -> None:
    url, database = postgres
    rows = {name: RowNotifications(shared=True) for name in ("prc_one", "prc_two")}
    one, two = (PostgresWakeups(url, process=name, rows=of_process) for name, of_process in rows.items())
    breakers = [SharedBreakers(states=SqlBreakerStates(database=database), signals=each) for each in (one, two)]
    heard: asyncio.Queue[OpenBreaker | None] = asyncio.Queue()
    failures: asyncio.Queue[int] = asyncio.Queue()
    breakers[1].changed = lambda _id, breaker: heard.put_nowait(breaker)
    breakers[1].failed = lambda _id, number: failures.put_nowait(number)
    with patient():
        await one.start()
        await two.start()
        try:
            for of_process in rows.values():
                await until_fresh(of_process)
            async with asyncio.timeout(60):
                breakers[0].failures(SERVER, 4)
                assert await failures.get() == 4
                breakers[0].opened(SERVER, OpenBreaker(openings=3, pause_s=60))
                opened = await heard.get()
                assert opened is not None
                assert opened.openings == 3
                breakers[0].closed(SERVER)
                assert await heard.get() is None
        finally:
            await breakers[0].close()
            await breakers[1].close()
            await one.stop()
            await two.stop()
