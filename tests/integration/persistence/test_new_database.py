"""New SQLite databases are made by a script instead of by all the revisions, and are no different
for it."""

import sqlite3
from pathlib import Path

import pytest

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.schema import new_database
from infrastructure.persistence.schema.new_database import SCRIPT, made_at_once
from infrastructure.persistence.schema.revision import is_current
from infrastructure.persistence.schema.upgrade import upgrade
from tests.databases import sqlite_url
from tests.integration.persistence.schema_script import script_from_revisions


def everything_in(path: Path) -> tuple[list[tuple[str, str, str, list[str]]], dict[str, list[object]]]:
    """Each object with its SQL (in words: spaces do not matter), and the rows of each table."""
    with sqlite3.connect(path) as connection:
        objects = [
            (kind, name, table, (sql or "").split())
            for kind, name, table, sql in connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master")
        ]
        tables = [name for kind, name, _, _ in objects if kind == "table"]
        rows = {name: list(connection.execute(f'SELECT * FROM "{name}"')) for name in tables}
    return sorted(objects), rows


def test_the_script_is_what_the_revisions_make(tmp_path: Path) -> None:
    assert SCRIPT.read_text(encoding="utf-8") == script_from_revisions(tmp_path), (
        "a revision was added or changed: make schema"
    )


def test_a_database_made_at_once_is_one_that_all_revisions_were_applied_to(tmp_path: Path) -> None:
    made, upgraded = tmp_path / "made.db", tmp_path / "upgraded.db"
    assert made_at_once(sqlite_url(made))
    assert upgrade(sqlite_url(upgraded))
    assert everything_in(made) == everything_in(upgraded)
    assert is_current(sqlite_url(made))
    assert upgrade(sqlite_url(made)) is False


def test_a_database_that_has_something_is_left_to_the_revisions(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE somebodys (id INTEGER)")
    assert made_at_once(sqlite_url(path)) is False
    assert [name for _, name, _, _ in everything_in(path)[0]] == ["somebodys"]


def test_a_script_of_another_revision_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new_database, "HEAD", "9999")
    assert made_at_once(sqlite_url(tmp_path / "dragoman.db")) is False


def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "dragoman.db"
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(ServiceError) as refused:
        made_at_once(sqlite_url(path))
    assert refused.value.kind is ErrorKind.UNAVAILABLE
