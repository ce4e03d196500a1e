"""What a look at a database sees, without changing it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from infrastructure.persistence.schema.inspection import DatabaseInspection
from infrastructure.persistence.schema.revision import FIRST, HEAD, OLDER
from tests.databases import PostgresDatabases, SqliteFiles
from tests.stoppable_postgres import stoppable_postgres


def a_file(path: Path) -> DatabaseInspection:
    return DatabaseInspection(path=path, url=None)


@pytest.mark.requirement("G2")
def test_a_healthy_file_is_read_and_not_changed(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    before = path.read_bytes()
    seen = a_file(path).look()
    assert (seen.failure, seen.damage, seen.revision, seen.expected) == (None, None, HEAD, HEAD)
    assert path.read_bytes() == before


@pytest.mark.requirement("G2")
def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    assert not a_file(tmp_path / "none.db").look().is_there
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("G2")
def test_a_file_that_is_no_database_is_a_failure(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    path.write_bytes(b"not a database" * 1000)
    assert "SQLITE_NOTADB" in str(a_file(path).look().failure)


@pytest.mark.requirement("G2")
def test_a_damaged_file_is_told_apart_from_a_sound_one(sqlite_files: SqliteFiles) -> None:
    path = sqlite_files.fresh()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE padding (text TEXT)")
        connection.executemany("INSERT INTO padding VALUES (?)", [("x" * 500,) for _ in range(200)])
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    content[-8192:] = b"\xff" * 8192
    path.write_bytes(content)
    seen = a_file(path).look()
    assert seen.damage or seen.failure


@pytest.mark.requirement("G2", "K7")
@pytest.mark.parametrize(
    ("revision", "is_older"), [(FIRST, True), (OLDER[-1], True), ("0113", True), (HEAD, False), ("9999", False)]
)
def test_an_older_revision_is_told_from_an_unknown_one_whatever_their_numbers(
    revision: str, is_older: bool, sqlite_files: SqliteFiles
) -> None:
    path = sqlite_files.fresh()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", [revision])
        connection.commit()
    assert a_file(path).look().is_older is is_older


@pytest.mark.requirement("G2")
def test_an_older_schema_and_none_are_told(sqlite_files: SqliteFiles, tmp_path: Path) -> None:
    path = sqlite_files.fresh()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0001'")
        connection.commit()
    assert a_file(path).look().revision == "0001"
    empty = tmp_path / "empty.db"
    empty.touch()
    assert (a_file(empty).look().revision, a_file(empty).look().failure) == (None, None)


@pytest.mark.requirement("G2", "E6")
def test_a_postgresql_tells_its_version_its_schema_and_its_clock(postgres_databases: PostgresDatabases) -> None:
    with postgres_databases.fresh() as url:
        seen = DatabaseInspection(path=Path("unused"), url=url).look()
    assert seen.name.startswith("PostgreSQL ")
    assert (seen.revision, seen.queue_is_current, seen.failure) == (HEAD, True, None)
    assert seen.clock_ahead_s is not None
    with postgres_databases.empty() as url:
        empty = DatabaseInspection(path=Path("unused"), url=url).look()
    assert (empty.revision, empty.queue_is_current, empty.failure) == (None, False, None)


@pytest.mark.requirement("G2", "E6")
def test_a_postgresql_that_does_not_answer_is_a_failure() -> None:
    with stoppable_postgres() as server:
        server.stop("fast")
        seen = DatabaseInspection(path=Path("unused"), url=server.url).look()
        server.start()
    assert seen.failure
    assert seen.revision is None
