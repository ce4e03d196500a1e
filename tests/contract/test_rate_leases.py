"""The contract of token buckets that processes share, in memory and over both databases; and rates
over several processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

import pytest
from sqlalchemy import func, select, update

from application.system.rates import TooSoon
from application.system.shared_rates import RateLeases, SharedRates
from domain.rate_limit import RateLimit
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.limits.rate_leases import SqlRateLeases
from infrastructure.persistence.tables import limit_lease
from tests.databases import PostgresDatabases, SqliteFiles
from tests.doubles.rate_leases import InMemoryRateLeases
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused

pytestmark = pytest.mark.requirement("K3")

HOURLY = RateLimit(calls=100, per_s=360_000)
"""A place each hour, so that tests take less than a place's time."""
HOUR_S = 3_600.0


@dataclass(frozen=True, kw_only=True)
class Harness:
    """Buckets, and those of a second process on the same database."""

    leases: RateLeases
    others: RateLeases
    database: Database | None


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    if request.param == "memory":
        leases = InMemoryRateLeases(FixedClock())
        yield Harness(leases=leases, others=leases, database=None)
        return
    with ExitStack() as stack:
        databases: list[Database] = []
        if request.param == "sqlite":
            path = cast(SqliteFiles, request.getfixturevalue("sqlite_files")).fresh()
            databases = [SqliteDatabase(path)] * 2  # an SQLite database has one process
        else:
            url = stack.enter_context(cast(PostgresDatabases, request.getfixturevalue("postgres_databases")).fresh())
            databases = [PostgresDatabase(url, connections=4), PostgresDatabase(url, connections=4)]
        for database in dict.fromkeys(databases):
            await database.start()
        one, other = (SqlRateLeases(database=database) for database in databases)
        yield Harness(leases=one, others=other, database=databases[0])
        for database in dict.fromkeys(databases):
            await database.stop()


async def test_a_bucket_gives_out_its_calls_and_no_more_to_whichever_process_asks(harness: Harness) -> None:
    first = await harness.leases.lease("key_a", HOURLY, wanted=60, within_s=0)
    second = await harness.others.lease("key_a", HOURLY, wanted=60, within_s=0)
    third = await harness.leases.lease("key_a", HOURLY, wanted=60, within_s=0)
    assert [first.count, second.count, third.count] == [60, 40, 0]
    assert third.first_s == pytest.approx(HOUR_S, abs=120)


async def test_places_to_come_are_given_out_as_far_as_the_caller_waits(harness: Harness) -> None:
    await harness.leases.lease("srv_a", HOURLY, wanted=100, within_s=0)
    lot = await harness.others.lease("srv_a", HOURLY, wanted=10, within_s=3.5 * HOUR_S)
    assert lot.count == 3
    assert lot.first_s == pytest.approx(HOUR_S, abs=120)
    later = await harness.leases.lease("srv_a", HOURLY, wanted=10, within_s=4.5 * HOUR_S)
    assert later.count == 1
    assert later.first_s == pytest.approx(4 * HOUR_S, abs=120)


async def test_ids_and_limits_have_buckets_of_their_own(harness: Harness) -> None:
    wider = RateLimit(calls=101, per_s=HOURLY.per_s)
    for bucket, limit in (("key_a", HOURLY), ("key_b", HOURLY), ("key_a", wider)):
        lot = await harness.leases.lease(bucket, limit, wanted=1_000, within_s=0)
        assert lot.count == limit.calls


async def test_questions_at_the_same_moment_share_a_bucket_exactly(harness: Harness) -> None:
    both = (harness.leases, harness.others)
    lots = await asyncio.gather(*(both[n % 2].lease("key_a", HOURLY, wanted=7, within_s=0) for n in range(20)))
    assert sum(lot.count for lot in lots) == 100


async def test_what_is_used_of_buckets_is_what_all_processes_took(harness: Harness) -> None:
    await harness.leases.lease("key_a", HOURLY, wanted=60, within_s=0)
    await harness.others.lease("key_a", HOURLY, wanted=10, within_s=0)
    wider = RateLimit(calls=101, per_s=HOURLY.per_s)
    buckets = (("key_a", HOURLY), ("key_a", wider), ("key_b", HOURLY))
    assert await harness.others.used(buckets) == (70, 0, 0)
    assert await harness.others.used(()) == ()


@pytest.mark.parametrize("harness", ["sqlite", "postgres"], indirect=True)
async def test_full_buckets_are_forgotten_and_others_are_not(harness: Harness) -> None:
    assert harness.database is not None
    for bucket in ("old", "used"):
        await harness.leases.lease(bucket, HOURLY, wanted=50, within_s=0)
    long_full = update(limit_lease).where(limit_lease.c.limited.like("old %")).values(valid_until=1.0)
    await harness.database.write(lambda connection: connection.execute(long_full), scope=SYSTEM)
    await harness.others.forget_full()
    count = select(func.count()).select_from(limit_lease)
    assert await harness.database.read(lambda connection: connection.execute(count).scalar_one(), scope=SYSTEM) == 1
    assert (await harness.leases.lease("used", HOURLY, wanted=100, within_s=0)).count == 50


async def passed(rates: SharedRates, bucket: str, calls: int) -> int:
    number = 0
    for _ in range(calls):
        try:
            turn = rates.turn(((bucket, HOURLY),))
            number += (turn if isinstance(turn, float) else await turn) == 0
        except TooSoon:
            pass
    return number


async def test_four_processes_let_no_call_more_through_than_one_would_for_each_organization(harness: Harness) -> None:
    """Their clocks say different times: the database's decides."""
    clocks = [FixedClock() for _ in range(4)]
    for number, clock in enumerate(clocks):
        clock.advance(100_000.0 * number)
    processes = [
        SharedRates(leases=(harness.leases, harness.others)[number % 2], clock=clock)
        for number, clock in enumerate(clocks)
    ]
    total = await asyncio.gather(
        *(passed(process, bucket, 40) for process in processes for bucket in ("org_a", "org_b"))
    )
    assert sum(total[0::2]) == 100
    assert sum(total[1::2]) == 100


@pytest.mark.parametrize("harness", ["sqlite", "postgres"], indirect=True)
async def test_a_process_without_the_database_uses_its_lot_and_then_says_that_storage_is_away(harness: Harness) -> None:
    assert harness.database is not None
    a_thousand, clock = RateLimit(calls=1_000, per_s=1), FixedClock()
    rates = SharedRates(leases=harness.leases, clock=clock)

    async def call() -> None:
        turn = rates.turn((("key_a", a_thousand),))
        if not isinstance(turn, float):
            await turn

    for _ in range(50):
        await call()
    await rates.close()
    await harness.database.stop()
    with refused("storage_unavailable"):
        for _ in range(1_000):
            await call()
    await harness.database.start()
    await call()
