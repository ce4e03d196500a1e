"""The one writer of SQLite: batches, savepoints, withdrawal, and what happens when its connection
fails."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from domain.errors import ServiceError
from infrastructure.persistence.engine.database import SYSTEM, Unit
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.schema.readiness import DatabaseReadiness
from infrastructure.persistence.schema.upgrade import upgrade
from tests.builders import ORG, after
from tests.databases import SqliteFiles, sqlite_url
from tests.integration.persistence.conftest import add_first_organization
from tests.integration.persistence.units import Gate, adding, failing_after_adding, thread_numbers


def leaving_a_dangling_reference(connection: Connection) -> None:
    """Names a run that is not there, which the database checks when it commits."""
    connection.execute(
        text("INSERT INTO idempotency_key VALUES (:org, 'key', 'digest', 'run_of_nobody', 0)"), {"org": ORG}
    )


async def behind_a_gate(sqlite: SqliteDatabase) -> tuple[Gate, "asyncio.Task[str]"]:
    """The writer busy with a unit; everything submitted now waits for the next batch."""
    gate = Gate()
    holder = asyncio.create_task(sqlite.write(gate.unit, scope=SYSTEM))
    await asyncio.to_thread(gate.wait_begun)
    return gate, holder


async def test_units_that_wait_are_committed_together(sqlite: SqliteDatabase) -> None:
    before = sqlite.commits
    gate, holder = await behind_a_gate(sqlite)
    waiting = [asyncio.create_task(sqlite.write(adding(number), scope=SYSTEM)) for number in range(50)]
    await asyncio.sleep(0)
    gate.open()
    assert await asyncio.gather(*waiting) == list(range(50))
    assert await holder == "passed"
    assert sqlite.commits - before == 2


async def test_a_batch_is_bounded(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), max_batch=10)
    await database.start()
    gate, holder = await behind_a_gate(database)
    waiting = [asyncio.create_task(database.write(lambda _: None, scope=SYSTEM)) for _ in range(25)]
    await asyncio.sleep(0)
    gate.open()
    await asyncio.gather(holder, *waiting)
    await database.stop()
    assert database.commits == 4


async def test_a_failing_unit_in_a_batch_leaves_its_neighbours_committed(sqlite: SqliteDatabase) -> None:
    before = sqlite.commits
    gate, holder = await behind_a_gate(sqlite)
    units = [adding(1), failing_after_adding(2), adding(3)]
    waiting = [asyncio.create_task(sqlite.write(unit, scope=SYSTEM)) for unit in units]
    await asyncio.sleep(0)
    gate.open()
    first, second, third = await asyncio.gather(*waiting, return_exceptions=True)
    await holder
    assert (first, type(second), third) == (1, ValueError, 3)
    assert sqlite.commits - before == 2
    assert await thread_numbers(sqlite) == [1, 3]


async def test_units_of_a_batch_are_executed_again_in_savepoints_only_if_one_fails(sqlite: SqliteDatabase) -> None:
    executed: list[int] = []

    def noting(number: int) -> Unit[int]:
        def unit(connection: Connection) -> int:
            executed.append(number)
            return adding(number)(connection)

        return unit

    for units in ([noting(1), noting(2)], [noting(3), failing_after_adding(4), noting(5)]):
        gate, holder = await behind_a_gate(sqlite)
        waiting = [asyncio.create_task(sqlite.write(unit, scope=SYSTEM)) for unit in units]
        await asyncio.sleep(0)
        gate.open()
        await asyncio.gather(holder, *waiting, return_exceptions=True)
    assert executed == [1, 2, 3, 3, 5]
    assert await thread_numbers(sqlite) == [1, 2, 3, 5]


async def test_a_failing_commit_fails_every_unit_of_its_batch_and_no_later_one(sqlite: SqliteDatabase) -> None:
    gate, holder = await behind_a_gate(sqlite)
    units = [adding(1), leaving_a_dangling_reference, adding(2)]
    waiting = [asyncio.create_task(sqlite.write(unit, scope=SYSTEM)) for unit in units]
    await asyncio.sleep(0)
    gate.open()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    await holder
    assert [type(result) for result in results] == [IntegrityError] * 3
    assert await sqlite.write(adding(3), scope=SYSTEM) == 3
    assert await thread_numbers(sqlite) == [3]


async def test_a_unit_whose_caller_leaves_before_it_begins_never_runs(sqlite: SqliteDatabase) -> None:
    gate, holder = await behind_a_gate(sqlite)
    woken: list[int] = []
    leaving = asyncio.create_task(sqlite.write(adding(1), scope=SYSTEM, after_commit=woken.append))
    staying = asyncio.create_task(sqlite.write(adding(2), scope=SYSTEM, after_commit=woken.append))
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    gate.open()
    assert (await holder, await staying) == ("passed", 2)
    assert await thread_numbers(sqlite) == [2]
    assert woken == [2]


async def test_a_reading_unit_sees_one_snapshot(sqlite: SqliteDatabase) -> None:
    gate = Gate()

    def counting_twice(connection: Connection) -> tuple[int, int]:
        count = text("SELECT count(*) FROM thread")
        first = connection.execute(count).scalar_one()
        gate.unit(connection)
        return first, connection.execute(count).scalar_one()

    reading = asyncio.create_task(sqlite.read(counting_twice, scope=SYSTEM))
    await asyncio.to_thread(gate.wait_begun)
    await sqlite.write(adding(1), scope=SYSTEM)
    gate.open()
    assert await reading == (0, 0)
    assert await thread_numbers(sqlite) == [1]


@pytest.mark.parametrize(("synchronous", "level"), [("normal", 1), ("full", 2)])
async def test_the_writer_uses_wal_with_the_durability_asked_for(
    sqlite_files: SqliteFiles, synchronous: str, level: int
) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), synchronous="full" if synchronous == "full" else "normal")
    await database.start()

    def pragmas(connection: Connection) -> list[object]:
        return [
            connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]

    assert await database.write(pragmas, scope=SYSTEM) == ["wal", level, 1]
    await database.stop()


async def test_times_in_rows_are_whole_microseconds(sqlite: SqliteDatabase) -> None:
    await sqlite.write(adding(1), scope=SYSTEM)
    stored = await sqlite.read(lambda c: c.execute(text("SELECT created_at FROM thread")).scalar_one(), scope=SYSTEM)
    assert stored == int(after(0).timestamp()) * 1_000_000


def closing_the_connection(connection: Connection) -> None:
    """Takes the connection away from under its thread."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    raw.close()


async def test_every_unit_whose_writing_connection_fails_is_told_and_the_writer_goes_on(
    sqlite: SqliteDatabase,
) -> None:
    gate, holder = await behind_a_gate(sqlite)
    units = [adding(1), closing_the_connection, adding(2)]
    waiting = [asyncio.create_task(sqlite.write(unit, scope=SYSTEM)) for unit in units]
    await asyncio.sleep(0)
    gate.open()
    async with asyncio.timeout(60):
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert await holder == "passed"
        assert [getattr(result, "code", None) for result in results] == ["storage_unavailable"] * 3
        assert await sqlite.write(adding(3), scope=SYSTEM) == 3
        assert await sqlite.write(lambda c: c.execute(text("PRAGMA foreign_keys")).scalar_one(), scope=SYSTEM) == 1
    assert await thread_numbers(sqlite) == [3]


def failing_once_undone(connection: Connection) -> None:
    """SQLite undoes a transaction by itself where the disk is full."""
    connection.execute(text("ROLLBACK"))
    raise ValueError("the disk is full")


async def test_a_unit_whose_transaction_is_gone_fails_with_what_it_raised(sqlite: SqliteDatabase) -> None:
    with pytest.raises(ValueError, match="the disk is full"):
        await sqlite.write(failing_once_undone, scope=SYSTEM)

    assert await sqlite.write(adding(1), scope=SYSTEM) == 1


async def test_on_a_full_disk_a_group_fails_and_is_stored_once_there_is_room(sqlite: SqliteDatabase) -> None:
    def limit_to(pages: int) -> Unit[None]:
        def unit(connection: Connection) -> None:
            connection.execute(text(f"PRAGMA max_page_count = {pages}")).close()

        return unit

    def adding_much(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE filler AS SELECT zeroblob(1000000) AS x"))

    await sqlite.write(limit_to(1), scope=SYSTEM)  # no page more than there are
    gate, holder = await behind_a_gate(sqlite)
    waiting = [asyncio.create_task(sqlite.write(unit, scope=SYSTEM)) for unit in (adding(1), adding_much)]
    await asyncio.sleep(0)
    gate.open()
    first, full = await asyncio.gather(*waiting, return_exceptions=True)
    await holder
    assert isinstance(full, ServiceError)
    assert full.code == "storage_unavailable"

    await sqlite.write(limit_to(1_000_000), scope=SYSTEM)
    assert await sqlite.write(adding(2), scope=SYSTEM) == 2
    assert await thread_numbers(sqlite) == ([1, 2] if first == 1 else [2])


async def test_the_wal_is_checkpointed_as_it_grows(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    database = SqliteDatabase(path)
    await database.start()
    await database.write(lambda connection: connection.execute(text("CREATE TABLE filler (x)")), scope=SYSTEM)

    def adding_much(connection: Connection) -> None:
        connection.execute(text("INSERT INTO filler VALUES (zeroblob(50000))"))
        connection.execute(text("DELETE FROM filler"))

    for _ in range(2_000):  # 100 MB in all
        await database.write(adding_much, scope=SYSTEM)

    assert path.with_name(f"{path.name}-wal").stat().st_size < 40_000_000
    await database.stop()


@pytest.mark.requirement("E7")
async def test_the_wal_is_cut_to_nothing_at_rest_and_written_again_afterwards(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    wal = path.with_name(f"{path.name}-wal")
    database = SqliteDatabase(path, rest_s=0.01)
    await database.start()
    await database.write(lambda connection: connection.execute(text("CREATE TABLE filler (x)")), scope=SYSTEM)
    for count in (1, 2):
        await database.write(
            lambda connection: connection.execute(text("INSERT INTO filler VALUES (zeroblob(50000))")), scope=SYSTEM
        )
        async with asyncio.timeout(60):
            while wal.stat().st_size:
                await database.read(lambda connection: connection.execute(text("SELECT 1")), scope=SYSTEM)
        counted = await database.read(
            lambda connection: connection.scalar(text("SELECT count(*) FROM filler")), scope=SYSTEM
        )
        assert counted == count
    await database.stop()


async def test_a_stop_that_is_cancelled_commits_the_waiting_units_and_ends(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    database = SqliteDatabase(path)
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    gate, holder = await behind_a_gate(database)
    waiting = asyncio.create_task(database.write(adding(1), scope=SYSTEM))
    await asyncio.sleep(0)
    stopping = asyncio.create_task(database.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    gate.open()

    assert (await holder, await waiting) == ("passed", 1)
    await database.stop()
    with closing(sqlite3.connect(path)) as stored:
        assert stored.execute("SELECT count(*) FROM thread").fetchone() == (1,)


async def test_a_reader_whose_connection_fails_answers_and_goes_on(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), readers=1)
    await database.start()
    async with asyncio.timeout(60):
        with pytest.raises(ServiceError) as failed:
            await database.read(closing_the_connection, scope=SYSTEM)
        assert failed.value.code == "storage_unavailable"
        assert await thread_numbers(database) == []
    await database.stop()


@pytest.mark.usefixtures("patient_readiness")
async def test_a_database_that_cannot_be_written_to_is_not_ready(sqlite: SqliteDatabase) -> None:
    readiness = DatabaseReadiness(database=sqlite)
    assert await readiness.problems() == ()
    await sqlite.write(lambda connection: connection.execute(text("PRAGMA query_only = ON")).close(), scope=SYSTEM)
    assert [found.part for found in await readiness.problems()] == ["database"]
    await sqlite.write(lambda connection: connection.execute(text("PRAGMA query_only = OFF")).close(), scope=SYSTEM)
    assert await readiness.problems() == ()


@pytest.mark.requirement("E6")
@pytest.mark.usefixtures("patient_readiness")
@pytest.mark.parametrize(("failure_s", "expected"), [(3_600.0, ["database"]), (0.0, [])])
async def test_a_database_is_not_ready_while_its_disk_is_full_even_if_a_small_write_succeeds(
    sqlite_files: SqliteFiles, failure_s: float, expected: list[str]
) -> None:
    def fill(connection: Connection) -> None:
        connection.execute(text("PRAGMA max_page_count = 1")).close()  # at most as many pages as there are
        connection.execute(text("CREATE TABLE filler AS SELECT zeroblob(5000000)"))

    database = SqliteDatabase(sqlite_files.fresh(), failure_s=failure_s)
    await database.start()
    with pytest.raises(ServiceError) as full:
        await database.write(fill, scope=SYSTEM)
    assert full.value.code == "storage_unavailable"
    assert [found.part for found in await DatabaseReadiness(database=database).problems()] == expected
    await database.stop()


@pytest.mark.requirement("E6")
async def test_a_database_is_not_ready_with_too_little_space_on_its_disk(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), min_free_bytes=2**62)
    await database.start()
    found = await DatabaseReadiness(database=database).problems()
    assert [obstacle.detail for obstacle in found] == ["The disk of the database is full."]
    await database.stop()


async def test_the_files_of_a_database_are_its_owner_s_alone(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    upgrade(sqlite_url(path))
    database = SqliteDatabase(path)
    await database.start()
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    await database.stop()
    assert modes == {"dragoman.db": 0o600, "dragoman.db-wal": 0o600, "dragoman.db-shm": 0o600}
