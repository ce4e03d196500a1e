"""Free pages of an SQLite file: how many there are, and how the file gets smaller, in steps or at
once."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.sqlite.threads import raw_of

IN_STEPS = "auto_vacuum = INCREMENTAL"
"""Set before the first table is created: later it needs a VACUUM."""
_INCREMENTAL = 2
_KEPT_SHARE = 10
"""One of so many pages stays free: later rows need it again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSpace:
    """Bytes of the file and those of its free pages. `shrinks`: the file gets smaller in steps."""

    size: int
    free: int
    shrinks: bool


def space_of(connection: sqlite3.Connection) -> FileSpace:
    page = _pragma(connection, "page_size")
    return FileSpace(
        size=page * _pragma(connection, "page_count"),
        free=page * _pragma(connection, "freelist_count"),
        shrinks=_pragma(connection, "auto_vacuum") == _INCREMENTAL,
    )


def give_back(connection: Connection, *, at_most: int) -> bool:
    """Remove up to `at_most` free pages in the present transaction, a tenth of all pages stays.
    Whether there are more."""
    raw = raw_of(connection)
    surplus = _pragma(raw, "freelist_count") - _pragma(raw, "page_count") // _KEPT_SHARE
    if surplus <= 0 or _pragma(raw, "auto_vacuum") != _INCREMENTAL:
        return False
    for _ in range(min(surplus, at_most)):
        raw.execute(
            "PRAGMA incremental_vacuum(1)"
        ).close()  # a page per step of the statement, and the driver takes one step
    return surplus > at_most


def vacuum(path: Path) -> tuple[int, int]:
    """Rewrite the file without free pages, so that it gets smaller in steps from then on. Its size
    in bytes before and after. No other process may use it.

    Raises NOT_FOUND `database_missing`, UNAVAILABLE `vacuum_failed`.
    """
    if not path.exists():
        raise ServiceError("database_missing", ErrorKind.NOT_FOUND, f"There is no database at {path}.")
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            before = space_of(connection).size
            connection.execute(f"PRAGMA {IN_STEPS}")
            connection.execute("VACUUM")
            after = space_of(connection).size
    except sqlite3.Error as error:
        detail = f"{path} was not changed: the disk has too little space (it takes as much again), or the file is damaged (`dragoman doctor`)."
        raise ServiceError("vacuum_failed", ErrorKind.UNAVAILABLE, detail) from error
    return before, after


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    [value] = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)
