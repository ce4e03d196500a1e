"""Small units of work on SQLite: committed on the event loop while the writer rests, and as safe as its own. ADR 0027."""

import asyncio
import math
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from domain.errors import ServiceError
from infrastructure.persistence.engine.database import SYSTEM, Unit
from infrastructure.persistence.engine.sqlite.batch import raw_of
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from tests.builders import ORG
from tests.databases import SqliteFiles
from tests.integration.persistence.conftest import add_first_organization
from tests.integration.persistence.units import Gate, adding, count_threads, failing_after_adding, thread_numbers

T = TypeVar("T")


def thread_of_mine(connection: Connection) -> int:
    """Which thread runs the unit."""
    return threading.get_ident()


def leaving_a_dangling_reference(connection: Connection) -> None:
    """Names a run that is not there, which the database checks when it commits."""
    connection.execute(
        text("INSERT INTO idempotency_key VALUES (:org, 'key', 'digest', 'run_of_nobody', 0)"), {"org": ORG}
    )


def failing_once_undone(connection: Connection) -> None:
    """SQLite undoes a transaction by itself where the disk is full."""
    connection.execute(text("ROLLBACK"))
    raise ValueError("the disk is full")


async def gathered(database: SqliteDatabase, unit: Unit[T]) -> T:
    """Stores a small unit that may wait for company."""
    return await database.write(unit, scope=SYSTEM, is_small=True, may_gather=True)


@pytest.fixture
async def at(sqlite_files: SqliteFiles) -> AsyncIterator[tuple[Path, SqliteDatabase]]:
    """A migrated file and the database on it."""
    path = sqlite_files.fresh()
    database = SqliteDatabase(path, slow_commit_s=math.inf)
    await database.start()
    await database.write(add_first_organization, scope=SYSTEM)
    yield path, database
    await database.stop()


async def test_a_small_unit_is_committed_here_and_any_other_in_the_thread(sqlite: SqliteDatabase) -> None:
    here = threading.get_ident()
    before = sqlite.commits

    assert await sqlite.write(thread_of_mine, scope=SYSTEM, is_small=True) == here
    assert await sqlite.write(thread_of_mine, scope=SYSTEM) != here
    assert sqlite.commits - before == 2


async def test_with_full_durability_the_thread_waits_for_the_disk(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), synchronous="full")
    await database.start()
    try:
        assert await database.write(thread_of_mine, scope=SYSTEM, is_small=True) != threading.get_ident()
    finally:
        await database.stop()


async def test_a_small_unit_waits_its_turn_while_the_writer_is_at_work(sqlite: SqliteDatabase) -> None:
    gate = Gate()
    holder = asyncio.create_task(sqlite.write(gate.unit, scope=SYSTEM))
    await asyncio.to_thread(gate.wait_begun)
    small = asyncio.create_task(sqlite.write(thread_of_mine, scope=SYSTEM, is_small=True))
    await asyncio.sleep(0)
    assert not small.done()
    gate.open()

    assert await small != threading.get_ident()
    assert await holder == "passed"


async def test_what_is_committed_here_is_read_by_others_at_once(sqlite: SqliteDatabase) -> None:
    woken: list[int] = []
    for number in (1, 2):
        assert await sqlite.write(adding(number), scope=SYSTEM, is_small=True, after_commit=woken.append) == number

    assert await thread_numbers(sqlite) == [1, 2]
    assert woken == [1, 2]


async def test_a_small_unit_that_fails_is_undone_and_harms_no_other(sqlite: SqliteDatabase) -> None:
    with pytest.raises(ValueError, match="1"):
        await sqlite.write(failing_after_adding(1), scope=SYSTEM, is_small=True)
    with pytest.raises(IntegrityError):
        await sqlite.write(leaving_a_dangling_reference, scope=SYSTEM, is_small=True)

    assert await sqlite.write(adding(2), scope=SYSTEM, is_small=True) == 2
    assert await sqlite.write(adding(3), scope=SYSTEM) == 3
    assert await thread_numbers(sqlite) == [2, 3]


async def test_a_unit_whose_transaction_is_gone_fails_with_what_it_raised(sqlite: SqliteDatabase) -> None:
    with pytest.raises(ValueError, match="the disk is full"):
        await sqlite.write(failing_once_undone, scope=SYSTEM, is_small=True)

    assert await sqlite.write(adding(1), scope=SYSTEM, is_small=True) == 1


async def test_while_another_process_writes_the_thread_is_the_one_that_waits(at: tuple[Path, SqliteDatabase]) -> None:
    path, database = at
    assert await database.write(thread_of_mine, scope=SYSTEM, is_small=True) == threading.get_ident()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        small = asyncio.create_task(database.write(thread_of_mine, scope=SYSTEM, is_small=True))
        await asyncio.sleep(0)  # were the event loop the one to wait, it would not come back before the wait has failed
        assert not small.done()
        other.execute("COMMIT")

    assert await small != threading.get_ident()


async def test_the_log_is_folded_by_the_thread(at: tuple[Path, SqliteDatabase]) -> None:
    path, database = at
    filled = text("INSERT INTO secret_filler VALUES (zeroblob(50000))")
    await database.write(lambda connection: connection.execute(text("CREATE TABLE secret_filler (x)")), scope=SYSTEM)

    def adding_much(connection: Connection) -> None:
        connection.execute(filled)
        connection.execute(text("DELETE FROM secret_filler"))

    for _ in range(3_000):
        await database.write(adding_much, scope=SYSTEM, is_small=True)
        await asyncio.sleep(0)

    # 3,000 commits write 150 MB; folded each 1,000, the log is begun again and again.
    assert path.with_name(f"{path.name}-wal").stat().st_size < 100_000_000


async def test_nothing_is_committed_here_once_the_database_has_stopped(sqlite_files: SqliteFiles) -> None:
    database = SqliteDatabase(sqlite_files.fresh(), slow_commit_s=math.inf)
    await database.start()
    await database.stop()

    with pytest.raises(Exception, match="not open"):
        await database.write(thread_of_mine, scope=SYSTEM, is_small=True)


async def test_what_is_gathered_in_one_turn_shares_a_commit(sqlite: SqliteDatabase) -> None:
    before = sqlite.commits

    assert await asyncio.gather(*(gathered(sqlite, adding(number)) for number in range(1, 4))) == [1, 2, 3]
    assert await gathered(sqlite, thread_of_mine) == threading.get_ident()

    assert sqlite.commits - before == 2
    assert await thread_numbers(sqlite) == [1, 2, 3]


async def test_the_event_loop_is_held_by_few_at_once_and_all_are_stored_in_order(sqlite: SqliteDatabase) -> None:
    before = sqlite.commits
    stored: list[int] = []

    await asyncio.gather(
        *(
            sqlite.write(adding(number), scope=SYSTEM, after_commit=stored.append, is_small=True, may_gather=True)
            for number in range(1, 41)
        )
    )

    assert stored == list(range(1, 41)) == await thread_numbers(sqlite)
    assert sqlite.commits - before == 3
    assert await gathered(sqlite, adding(41)) == 41  # it waits a moment for others, and goes on without them


async def test_one_of_the_gathered_fails_alone(sqlite: SqliteDatabase) -> None:
    ended = await asyncio.gather(
        gathered(sqlite, adding(1)),
        gathered(sqlite, failing_after_adding(2)),
        gathered(sqlite, adding(3)),
        return_exceptions=True,
    )

    assert [ended[0], type(ended[1]), ended[2]] == [1, ValueError, 3]
    assert await thread_numbers(sqlite) == [1, 3]


async def test_what_the_commit_refuses_of_one_is_refused_to_all_it_was_gathered_with(sqlite: SqliteDatabase) -> None:
    ended = await asyncio.gather(
        gathered(sqlite, adding(1)), gathered(sqlite, leaving_a_dangling_reference), return_exceptions=True
    )

    assert [type(error) for error in ended] == [IntegrityError, IntegrityError]
    assert await thread_numbers(sqlite) == []
    assert await gathered(sqlite, adding(2)) == 2


async def test_who_gives_up_before_the_gathered_are_stored_has_changed_nothing(sqlite: SqliteDatabase) -> None:
    given_up = asyncio.create_task(gathered(sqlite, adding(1)))
    kept = asyncio.create_task(gathered(sqlite, adding(2)))
    asyncio.get_running_loop().call_soon(given_up.cancel)  # once it is gathered, before it is stored

    assert await kept == 2
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert await thread_numbers(sqlite) == [2]


async def test_what_is_gathered_is_left_to_a_writer_at_work(sqlite: SqliteDatabase) -> None:
    gate = Gate()
    holder = asyncio.create_task(sqlite.write(gate.unit, scope=SYSTEM))
    await asyncio.to_thread(gate.wait_begun)
    waiting = [asyncio.create_task(gathered(sqlite, thread_of_mine)) for _ in range(2)]
    for _ in range(3):  # turns of the event loop: they are gathered, then to be stored
        await asyncio.sleep(0)
    gate.open()

    assert threading.get_ident() not in await asyncio.gather(*waiting)
    assert await holder == "passed"


async def test_stopping_commits_what_is_gathered(at: tuple[Path, SqliteDatabase]) -> None:
    path, database = at
    waiting = asyncio.create_task(gathered(database, adding(1)))
    stopping = asyncio.get_running_loop().create_task(database.stop())

    assert await waiting == 1
    await stopping
    with closing(sqlite3.connect(path)) as stored:
        assert stored.execute("SELECT count(*) FROM thread").fetchone() == (1,)


async def test_a_small_look_is_taken_here_on_what_is_committed_and_any_other_in_a_thread(
    sqlite: SqliteDatabase,
) -> None:
    here = threading.get_ident()
    await sqlite.write(adding(1), scope=SYSTEM)

    assert await sqlite.read(count_threads, scope=SYSTEM, is_small=True) == 1
    assert await sqlite.read(thread_of_mine, scope=SYSTEM, is_small=True) == here
    assert await sqlite.read(thread_of_mine, scope=SYSTEM) != here


async def test_a_small_look_does_not_wait_for_the_writer(sqlite: SqliteDatabase) -> None:
    gate = Gate()
    holder = asyncio.create_task(sqlite.write(gate.unit, scope=SYSTEM))
    await asyncio.to_thread(gate.wait_begun)

    assert await sqlite.read(thread_of_mine, scope=SYSTEM, is_small=True) != threading.get_ident()
    gate.open()
    assert await holder == "passed"


async def test_a_small_look_that_fails_is_told_as_any_other_and_leaves_no_transaction(sqlite: SqliteDatabase) -> None:
    def failing(connection: Connection) -> None:
        count_threads(connection)
        raise ValueError("not there")

    with pytest.raises(ValueError, match="not there"):
        await sqlite.read(failing, scope=SYSTEM, is_small=True)

    assert await sqlite.write(adding(1), scope=SYSTEM, is_small=True) == 1
    assert await sqlite.read(count_threads, scope=SYSTEM) == 1


async def test_on_a_full_disk_what_is_gathered_fails_and_is_stored_once_there_is_room(sqlite: SqliteDatabase) -> None:
    def limit_to(pages: int) -> Unit[None]:
        def unit(connection: Connection) -> None:
            connection.execute(text(f"PRAGMA max_page_count = {pages}")).close()

        return unit

    def adding_much(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE filler AS SELECT zeroblob(1000000) AS x"))

    await gathered(sqlite, limit_to(1))  # no page more than there are
    first, full = await asyncio.gather(
        gathered(sqlite, adding(1)), gathered(sqlite, adding_much), return_exceptions=True
    )
    assert isinstance(full, ServiceError)
    assert full.code == "storage_unavailable"

    await gathered(sqlite, limit_to(1_000_000))
    assert await gathered(sqlite, adding(2)) == 2
    assert await thread_numbers(sqlite) == ([1, 2] if first == 1 else [2])


async def test_units_whose_connection_breaks_under_them_are_told_and_the_next_ones_stored(
    sqlite: SqliteDatabase,
) -> None:
    def breaking(connection: Connection) -> None:
        raw_of(connection).close()
        raise ValueError("broken")

    units = (gathered(sqlite, adding(1)), gathered(sqlite, breaking), gathered(sqlite, adding(2)))
    results = await asyncio.wait_for(asyncio.gather(*units, return_exceptions=True), 60)
    assert [type(result) for result in results] == [ServiceError, ValueError, ServiceError]
    with pytest.raises(ServiceError):  # the thread's, which finds out and connects anew
        await gathered(sqlite, adding(3))
    assert await gathered(sqlite, adding(4)) == 4
    assert await thread_numbers(sqlite) == [4]
