"""Inspects a database without changing it: for `dragoman doctor`, also if the service cannot
start."""

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres import queue_schema
from infrastructure.persistence.engine.sqlite.vacuum import FileSpace, space_of
from infrastructure.persistence.schema.revision import FIRST, HEAD, StoredSchema, plain_engine, stored_schema

CHECK_S = 10.0
"""Time limit of the check of an SQLite file for damage. Large files are checked partly."""
_STEPS_BETWEEN_LOOKS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseReport:
    """The result. `name` is the database's kind and version, or its path. With `failure`, a
    sentence, everything else is missing. `revision` is None without a schema, `oldest` is the first
    upgradable one, `is_older` is for a schema that this version upgrades, `is_compatible` for one
    of a newer version that works with this one. `clock_ahead_s` compares the server's clock with
    this machine's.
    `damage` is SQLite's report about its file, `space` is for SQLite."""

    name: str
    is_there: bool = True
    failure: str | None = None
    revision: str | None = None
    expected: str = HEAD
    oldest: str = FIRST
    is_older: bool = False
    is_compatible: bool = False
    queue_is_current: bool = True
    clock_ahead_s: float | None = None
    damage: str | None = None
    space: FileSpace | None = None


class DatabaseInspection:
    """For the SQLite file at `path`, or the PostgreSQL database at `url`."""

    def __init__(self, *, path: Path, url: str | None) -> None:
        self._path = path
        self._url = url

    def look(self) -> DatabaseReport:
        """Inspect. Database errors are part of the report."""
        return self._sqlite() if self._url is None else self._postgres(self._url)

    def _sqlite(self) -> DatabaseReport:
        name = str(self._path)
        if not self._path.exists():
            return DatabaseReport(name=name, is_there=False)
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                stored = _stored(connection)
                return DatabaseReport(
                    name=name,
                    revision=_named(stored),
                    is_older=stored.is_older,
                    is_compatible=stored.is_compatible,
                    damage=_damage(connection),
                    space=space_of(connection),
                )
        except sqlite3.Error as error:
            return DatabaseReport(
                name=name, failure=f"The file cannot be read as a database ({error.sqlite_errorname})."
            )

    def _postgres(self, url: str) -> DatabaseReport:
        engine = plain_engine(url)
        try:
            with engine.connect() as connection:
                return _of_server(connection)
        except DBAPIError as error:
            return DatabaseReport(name="PostgreSQL", failure=unusable(error).detail)
        finally:
            engine.dispose()


def _of_server(connection: Connection) -> DatabaseReport:
    version = connection.execute(text("SHOW server_version")).scalar_one()
    asked_at = time.time()
    theirs = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    ours = (asked_at + time.time()) / 2
    stored = stored_schema(connection)
    return DatabaseReport(
        name=f"PostgreSQL {version}",
        revision=_named(stored),
        is_older=stored.is_older,
        is_compatible=stored.is_compatible,
        queue_is_current=queue_schema.suits(connection),
        clock_ahead_s=theirs - ours,
    )


def _named(stored: StoredSchema) -> str | None:
    return ", ".join(stored.revisions) or None


def _stored(connection: sqlite3.Connection) -> StoredSchema:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone() is None:
        return StoredSchema()
    rows = connection.execute("SELECT * FROM alembic_version").fetchall()
    words = " ".join(str(word) for row in rows for word in row[1:])
    return StoredSchema(revisions=tuple(str(row[0]) for row in rows), works_with=tuple(words.split()))


def _damage(connection: sqlite3.Connection) -> str | None:
    deadline = time.monotonic() + CHECK_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    try:
        [said] = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    return None if said == "ok" else str(said)
