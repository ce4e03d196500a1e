"""The write-ahead log is folded while others write, and finished by whoever can begin it again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from infrastructure.persistence.engine.sqlite.wal_checkpoint import LogFolding


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[Path, sqlite3.Connection]]:
    """A database whose only row is in the log, and its writer."""
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE word (text)")
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        writer.execute("INSERT INTO word VALUES ('first')")
        yield path, writer


def in_the_file(path: Path) -> list[str]:
    """What is there for who does not look into the log."""
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as reader:
        return [text for (text,) in reader.execute("SELECT text FROM word")]


async def test_the_log_is_folded_while_somebody_writes(written: tuple[Path, sqlite3.Connection]) -> None:
    path, writer = written
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("INSERT INTO word VALUES ('second')")
    finished: list[list[str]] = []
    folding = LogFolding(path, finish=lambda: finished.append(in_the_file(path)))

    folding.begin()
    folding.begin()  # under way already
    await folding.stop()
    writer.execute("COMMIT")

    assert finished == [["first"]]
    assert writer.execute("SELECT count(*) FROM word").fetchone() == (2,)


async def test_a_log_that_cannot_be_folded_is_finished_all_the_same(tmp_path: Path) -> None:
    finished: list[str] = []
    folding = LogFolding(tmp_path / "missing.db", finish=lambda: finished.append("finished"))

    folding.begin()
    await folding.stop()

    assert finished == ["finished"]
