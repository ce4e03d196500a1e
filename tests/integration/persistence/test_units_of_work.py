"""What both databases promise about units of work."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.integration.persistence.units import Gate, adding, failing_after_adding, thread_numbers


async def test_a_unit_that_raises_stores_nothing_and_its_caller_gets_the_error(database: Database) -> None:
    with pytest.raises(ValueError, match="1"):
        await database.write(failing_after_adding(1), scope=SYSTEM)
    assert await thread_numbers(database) == []


async def test_of_units_that_wait_together_a_failing_one_fails_alone(database: Database) -> None:
    units = [failing_after_adding(number) if number % 3 == 0 else adding(number) for number in range(20)]
    results = await asyncio.gather(*(database.write(unit, scope=SYSTEM) for unit in units), return_exceptions=True)
    kept = [number for number in range(20) if number % 3]
    assert [result for result in results if not isinstance(result, ValueError)] == kept
    assert await thread_numbers(database) == kept


async def test_a_violated_constraint_reaches_the_store_as_it_is(database: Database) -> None:
    await database.write(adding(1), scope=SYSTEM)
    with pytest.raises(IntegrityError):
        await database.write(adding(1), scope=SYSTEM)


async def test_what_was_written_is_read_by_whoever_was_told(database: Database) -> None:
    for number in range(20):
        await database.write(adding(number), scope=SYSTEM)
        assert await thread_numbers(database) == list(range(number + 1))


async def test_reading_units_cannot_write(database: Database) -> None:
    with pytest.raises((ServiceError, DBAPIError)):
        await database.read(adding(1), scope=SYSTEM)
    assert await thread_numbers(database) == []


async def test_a_caller_that_leaves_while_its_unit_runs_still_has_it_committed_and_its_followers_woken(
    database: Database,
) -> None:
    gate, woken = Gate(), asyncio.Event()

    def unit(connection: Connection) -> int:
        gate.unit(connection)
        return adding(1)(connection)

    caller = asyncio.create_task(database.write(unit, scope=SYSTEM, after_commit=lambda _: woken.set()))
    await asyncio.to_thread(gate.wait_begun)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.open()
    await asyncio.wait_for(woken.wait(), 60)
    assert await thread_numbers(database) == [1]


async def test_nobody_is_woken_by_a_unit_that_failed(database: Database) -> None:
    woken: list[None] = []
    with pytest.raises(ValueError, match="1"):
        await database.write(failing_after_adding(1), scope=SYSTEM, after_commit=woken.append)
    assert woken == []


async def test_a_callback_that_fails_does_not_fail_the_committed_unit(database: Database) -> None:
    def fail(_: int) -> None:
        raise RuntimeError

    assert await database.write(adding(1), scope=SYSTEM, after_commit=fail) == 1
    assert await thread_numbers(database) == [1]


@pytest.mark.requirement("E7")
async def test_stopping_finishes_the_units_that_wait_and_refuses_later_ones(database: Database) -> None:
    gate = Gate()
    waiting = [asyncio.create_task(database.write(gate.unit, scope=SYSTEM))]
    waiting += [asyncio.create_task(database.write(lambda c, n=n: str(adding(n)(c)), scope=SYSTEM)) for n in range(10)]  # type: ignore[misc]
    await asyncio.to_thread(gate.wait_begun)
    stopping = asyncio.create_task(database.stop())
    await asyncio.sleep(0)
    gate.open()
    await stopping
    assert await asyncio.gather(*waiting) == ["passed", *(str(number) for number in range(10))]
    with pytest.raises(ServiceError) as refused:
        await database.write(adding(99), scope=SYSTEM)
    assert (refused.value.code, refused.value.kind) == ("storage_unavailable", ErrorKind.UNAVAILABLE)


@pytest.mark.requirement("E4")
async def test_what_the_database_would_refuse_again_is_not_taken_for_one_that_is_away(database: Database) -> None:
    for statement in ("SELECT * FROM no_such_table", "no such statement"):
        for attempt in (database.read, database.write):
            with pytest.raises(ServiceError) as refused:
                await attempt(lambda connection, said=statement: connection.execute(text(said)), scope=SYSTEM)  # type: ignore[misc]
            assert (refused.value.code, refused.value.kind) == ("storage_refused", ErrorKind.INTERNAL)
    assert await database.write(adding(1), scope=SYSTEM) == 1


@pytest.mark.parametrize(
    "unreachable",
    [
        lambda folder: SqliteDatabase(folder / "missing" / "dragoman.db"),
        lambda folder: PostgresDatabase(f"postgresql://nobody@/nothing?host={folder}"),
    ],
    ids=["sqlite", "postgres"],
)
async def test_a_database_that_cannot_be_opened_is_unavailable(unreachable: object, tmp_path: Path) -> None:
    assert callable(unreachable)
    database: Database = unreachable(tmp_path)
    with pytest.raises(ServiceError) as refused:
        await database.start()
    assert (refused.value.code, refused.value.kind) == ("storage_unavailable", ErrorKind.UNAVAILABLE)
    await database.stop()
