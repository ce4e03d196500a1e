"""Wake-ups between processes over a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import psycopg
import pytest

from infrastructure.events.postgres_wakeups import MAX_PAYLOAD_BYTES, PostgresWakeups
from infrastructure.events.row_notifications import RowNotifications
from tests.contract.patient_wakeups import patient, until_fresh
from tests.databases import PostgresDatabases

SOON_S = 60.0


@pytest.fixture
def database(postgres_databases: PostgresDatabases) -> Iterator[str]:
    with postgres_databases.fresh() as url:
        yield url


@asynccontextmanager
async def process(url: str, name: str) -> AsyncIterator[PostgresWakeups]:
    rows = RowNotifications(shared=True)
    wakeups = PostgresWakeups(url, process=name, rows=rows)
    with patient():
        await wakeups.start()
        try:
            await until_fresh(rows)
            yield wakeups
        finally:
            await wakeups.stop()


@pytest.mark.requirement("E6")
async def test_a_wake_up_reaches_the_listeners_of_other_processes(database: str) -> None:
    async with (
        process(database, "one") as one,
        process(database, "two") as two,
        two.subscribe("run.events:1") as listener,
        two.subscribe("run.events:2") as other,
    ):
        one.wake("run.events:1")
        assert await listener.wait(SOON_S)
        assert not await other.wait(0)


async def test_own_listeners_are_woken_at_once_and_once(database: str) -> None:
    async with (
        process(database, "one") as one,
        process(database, "two") as two,
        one.subscribe("a") as mine,
        one.subscribe("b") as later,
        two.subscribe("b") as theirs,
    ):
        one.wake("a")
        assert await mine.wait(0)
        # What comes back of the first has come before the second arrives there.
        one.wake("b")
        assert await theirs.wait(SOON_S)
        assert await later.wait(0)
        assert not await mine.wait(0)


async def test_more_topics_than_fit_into_one_message_all_arrive(database: str) -> None:
    topics = [f"run.events:{number:0100d}" for number in range(500)]
    assert sum(len(topic) for topic in topics) > 5 * MAX_PAYLOAD_BYTES
    async with (
        process(database, "one") as one,
        process(database, "two") as two,
        two.subscribe(topics[0]) as first,
        two.subscribe(topics[-1]) as last,
    ):
        one.wake(*topics)
        assert await first.wait(SOON_S)
        assert await last.wait(SOON_S)


@pytest.mark.requirement("E6")
async def test_after_a_lost_connection_every_listener_looks_again_and_wake_ups_go_on(database: str) -> None:
    async with process(database, "one") as one, process(database, "two") as two, two.subscribe("a") as listener:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
        assert await listener.wait(SOON_S), "what was said meanwhile may be lost, so it must look"
        one.wake("a")
        assert await listener.wait(SOON_S)


async def test_what_waits_is_sent_before_the_end(database: str) -> None:
    async with (
        process(database, "two") as two,
        two.subscribe("a") as listener,
        process(database, "one") as one,
    ):
        one.wake("a")
        assert await listener.wait(SOON_S)


async def test_without_a_database_waking_neither_fails_nor_waits() -> None:
    url = "postgresql://127.0.0.1:1/nowhere?connect_timeout=1"
    wakeups = PostgresWakeups(url, process="one", rows=RowNotifications(shared=True))
    starting = asyncio.create_task(wakeups.start())
    await asyncio.sleep(0)
    async with wakeups.subscribe("a") as listener:
        wakeups.wake("a")
        assert await listener.wait(0)
    starting.cancel()
    await wakeups.stop()
