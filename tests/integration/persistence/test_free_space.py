"""The file of an SQLite database gets smaller once rows are gone: in steps, or by `db vacuum` for
older files."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.database import PostgresDatabase
from infrastructure.persistence.engine.sqlite.database import SqliteDatabase
from infrastructure.persistence.engine.sqlite.vacuum import FileSpace, space_of, vacuum
from infrastructure.persistence.retention.free_space import SqlFreeSpace
from infrastructure.persistence.schema.inspection import DatabaseInspection
from tests.databases import PostgresDatabases, SqliteFiles
from tests.refusals import refused

ROWS = 4_000


def fill_and_empty(connection: Connection) -> None:
    """Leave about 2 MB of free pages behind."""
    connection.exec_driver_sql("CREATE TABLE padding (text TEXT)")
    connection.exec_driver_sql("INSERT INTO padding VALUES (?)", [("x" * 500,) for _ in range(ROWS)])
    connection.exec_driver_sql("DELETE FROM padding")


def space(path: Path) -> FileSpace:
    with closing(sqlite3.connect(path)) as connection:
        return space_of(connection)


async def filled_and_emptied(database: Database) -> None:
    await database.write(fill_and_empty, scope=SYSTEM)


@pytest.mark.requirement("K5")
async def test_the_file_gets_smaller_in_steps_and_a_tenth_of_it_stays_free(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    database = SqliteDatabase(path)
    await database.start()
    await filled_and_emptied(database)
    before = space(path)
    free_space = SqlFreeSpace(database=database, pages=100)

    assert await free_space.give_back()
    after_a_step = space(path)
    while await free_space.give_back():
        pass
    await database.stop()

    assert before.size - after_a_step.size == 100 * 4096
    left = space(path)
    assert path.stat().st_size == left.size < before.size / 2
    assert 0 < left.free <= before.size / 10


@pytest.mark.requirement("K5")
async def test_a_file_with_little_free_space_is_left_alone(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    database = SqliteDatabase(path)
    await database.start()
    before = space(path)

    assert not await SqlFreeSpace(database=database).give_back()

    await database.stop()
    assert space(path) == before


@pytest.mark.requirement("K5")
async def test_postgresql_returns_space_by_itself(postgres_databases: PostgresDatabases) -> None:
    with postgres_databases.fresh() as url:
        database = PostgresDatabase(url, connections=2)
        await database.start()
        assert not await SqlFreeSpace(database=database).give_back()
        await database.stop()


@pytest.mark.requirement("K5")
async def test_an_older_file_gets_smaller_after_one_vacuum(tmp_path: Path, sqlite_files: SqliteFiles) -> None:
    path = tmp_path / "older.db"
    _make_older(sqlite_files.fresh(), path)
    database = SqliteDatabase(path)
    await database.start()
    await filled_and_emptied(database)
    assert not await SqlFreeSpace(database=database).give_back()
    await database.stop()
    seen = DatabaseInspection(path=path, url=None).look().space
    assert seen is not None
    assert (seen.shrinks, seen.free > seen.size / 4) == (False, True)

    before, after = vacuum(path)

    assert (before, after) == (seen.size, path.stat().st_size)
    assert space(path) == FileSpace(size=after, free=0, shrinks=True)


def test_a_file_that_is_not_there_cannot_be_vacuumed(tmp_path: Path) -> None:
    with refused("database_missing"):
        vacuum(tmp_path / "none.db")


def test_a_file_that_is_no_database_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    path.write_bytes(b"not a database" * 1_000)
    with refused("vacuum_failed"):
        vacuum(path)
    assert path.read_bytes() == b"not a database" * 1_000


def _make_older(source: Path, path: Path) -> None:
    """As versions created it that set no `auto_vacuum`."""
    with closing(sqlite3.connect(source, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute(f"VACUUM INTO '{path}'")
