"""The contract of permits that processes share, in memory and over both databases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import cast

import pytest
from sqlalchemy import update

from application.system.shared_permits import EXPIRES_S, PermitLeases
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.limits.permit_leases import SqlPermitLeases
from infrastructure.persistence.tables import limit_lease
from tests.databases import PostgresDatabases, SqliteFiles
from tests.doubles.permit_leases import InMemoryPermitLeases
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("K3")

HALF_S = EXPIRES_S / 2 + 0.5
"""Twice as much is too long, however soon a test goes on; once leaves a slow one seconds."""


@dataclass(frozen=True, kw_only=True)
class Harness:
    """Permits, and `pass_s`, which lets time pass for the permits that are given out."""

    leases: PermitLeases
    pass_s: Callable[[float], Awaitable[None]]


def passing(database: Database) -> Callable[[float], Awaitable[None]]:
    async def pass_s(seconds: float) -> None:
        earlier = update(limit_lease).values(valid_until=limit_lease.c.valid_until - seconds)
        await database.write(lambda connection: connection.execute(earlier), scope=SYSTEM)

    return pass_s


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    if request.param == "memory":
        clock = FixedClock()

        async def advance(seconds: float) -> None:
            clock.advance(seconds)

        yield Harness(leases=InMemoryPermitLeases(clock), pass_s=advance)
        return
    with ExitStack() as stack:
        if request.param == "sqlite":
            database: Database = SqliteDatabase(cast(SqliteFiles, request.getfixturevalue("sqlite_files")).fresh())
        else:
            databases = cast(PostgresDatabases, request.getfixturevalue("postgres_databases"))
            database = PostgresDatabase(stack.enter_context(databases.fresh()), connections=4)
        await database.start()
        yield Harness(leases=SqlPermitLeases(database=database), pass_s=passing(database))
        await database.stop()


async def test_processes_together_get_what_the_limit_allows_and_no_more(harness: Harness) -> None:
    leases = harness.leases
    assert await leases.lease("calls/a", "one", limit=8, held=0, wanted=5) == 5
    assert await leases.lease("calls/a", "two", limit=8, held=0, wanted=5) == 3
    assert await leases.lease("calls/a", "one", limit=8, held=5, wanted=1) == 5
    assert await leases.lease("calls/b", "one", limit=8, held=0, wanted=8) == 8


async def test_what_is_given_back_another_process_gets(harness: Harness) -> None:
    leases = harness.leases
    await leases.lease("calls/a", "one", limit=2, held=0, wanted=2)
    assert await leases.lease("calls/a", "one", limit=2, held=1, wanted=0) == 1
    assert await leases.lease("calls/a", "two", limit=2, held=0, wanted=2) == 1
    await leases.lease("calls/a", "one", limit=2, held=0, wanted=0)
    assert await leases.lease("calls/a", "two", limit=2, held=1, wanted=2) == 2


async def test_questions_at_the_same_moment_do_not_exceed_the_limit_together(harness: Harness) -> None:
    granted = await asyncio.gather(
        *(harness.leases.lease("calls/a", f"process {n}", limit=10, held=0, wanted=3) for n in range(12))
    )
    assert sum(granted) == 10


async def test_permits_of_a_process_that_died_are_free_after_a_while(harness: Harness) -> None:
    leases = harness.leases
    await leases.lease("calls/a", "dead", limit=3, held=0, wanted=2)
    await leases.lease("calls/a", "alive", limit=3, held=0, wanted=1)
    await harness.pass_s(HALF_S)
    assert await leases.renew("alive", frozenset({"calls/a"})) == {"calls/a"}
    assert await leases.lease("calls/a", "new", limit=3, held=0, wanted=3) == 0
    await harness.pass_s(HALF_S)
    assert await leases.lease("calls/a", "new", limit=3, held=0, wanted=3) == 2


async def test_expired_permits_are_not_renewed(harness: Harness) -> None:
    leases = harness.leases
    for limited in ("calls/a", "calls/b", "calls/c"):
        await leases.lease(limited, "frozen", limit=1, held=0, wanted=1)
    await harness.pass_s(EXPIRES_S + 1)
    await leases.lease("calls/b", "frozen", limit=1, held=0, wanted=1)
    assert await leases.renew("frozen", frozenset({"calls/a", "calls/b"})) == {"calls/b"}
    assert await leases.lease("calls/a", "other", limit=1, held=0, wanted=1) == 1


async def test_expired_permits_that_another_process_has_leased_do_not_become_valid_again(harness: Harness) -> None:
    leases = harness.leases
    for holder in ("one", "two"):
        assert await leases.lease("calls/a", holder, limit=8, held=0, wanted=4) == 4
    await harness.pass_s(EXPIRES_S + 1)
    assert await leases.lease("calls/a", "one", limit=8, held=4, wanted=2) == 6
    assert await leases.lease("calls/a", "two", limit=8, held=4, wanted=0) == 2
    assert await leases.lease("calls/a", "two", limit=8, held=4, wanted=1) == 2
    assert await leases.lease("calls/a", "one", limit=8, held=8, wanted=0) == 6


async def test_limits_that_are_not_named_are_not_renewed(harness: Harness) -> None:
    leases = harness.leases
    for limited in ("calls/a", "calls/b"):
        await leases.lease(limited, "one", limit=1, held=0, wanted=1)
    await harness.pass_s(HALF_S)
    assert await leases.renew("one", frozenset({"calls/a"})) == {"calls/a"}
    await harness.pass_s(HALF_S)
    assert await leases.lease("calls/b", "two", limit=1, held=0, wanted=1) == 1
    assert await leases.lease("calls/a", "two", limit=1, held=0, wanted=1) == 0


async def test_what_expired_is_forgotten_and_nothing_else(harness: Harness) -> None:
    leases = harness.leases
    await leases.lease("calls/a", "dead", limit=2, held=0, wanted=1)
    await harness.pass_s(EXPIRES_S + 120)
    await leases.lease("calls/a", "alive", limit=2, held=0, wanted=1)
    await leases.forget_expired()
    await harness.pass_s(-EXPIRES_S - 120)
    assert await leases.lease("calls/a", "new", limit=2, held=0, wanted=2) == 1


async def test_a_process_that_ends_frees_all_its_permits(harness: Harness) -> None:
    leases = harness.leases
    await leases.lease("calls/a", "one", limit=1, held=0, wanted=1)
    await leases.lease("calls/b", "two", limit=1, held=0, wanted=1)
    await leases.withdraw("one")
    assert await leases.lease("calls/a", "two", limit=1, held=0, wanted=1) == 1
    assert await leases.lease("calls/b", "one", limit=1, held=0, wanted=1) == 0
