"""A transaction of several units of work on a connection to SQLite: shared by the thread that writes and the event loop."""

import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from infrastructure.persistence.engine.database import Job


def store(batch: "Sequence[Job[Any]]", connection: Connection, raw: sqlite3.Connection) -> bool:
    """Execute and commit in the transaction that was begun. A unit fails alone, a commit for all; whether there was one."""
    execute = _execute_alone if len(batch) == 1 else _execute_in_savepoint
    try:
        for job in batch:
            if not job.withdrawn:
                execute(job, connection, raw)
        if raw.in_transaction:
            raw.execute("COMMIT").close()
            return True
    except sqlite3.Error as error:
        if raw.in_transaction:
            raw.execute("ROLLBACK").close()
        for job in batch:
            if not job.failed:
                job.fail(wrapped(error))
    return False


def raw_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise TypeError(f"{raw!r} is not a connection to SQLite")
    return raw


def wrapped(error: Exception) -> DBAPIError:
    """As SQLAlchemy would raise it, so that callers meet one family of errors."""
    if isinstance(error, DBAPIError):
        return error
    family = IntegrityError if isinstance(error, sqlite3.IntegrityError) else OperationalError
    return family(None, None, error)


def _execute_alone(job: Job[Any], connection: Connection, raw: sqlite3.Connection) -> None:
    try:
        job.execute(connection)
    except Exception as error:  # noqa: BLE001  # it goes to the unit's caller
        job.fail(error)
        if raw.in_transaction:  # after some errors (disk full) SQLite has undone it by itself
            raw.execute("ROLLBACK").close()


def _execute_in_savepoint(job: Job[Any], connection: Connection, raw: sqlite3.Connection) -> None:
    raw.execute("SAVEPOINT unit").close()
    try:
        job.execute(connection)
    except Exception as error:  # noqa: BLE001  # it goes to the unit's caller
        job.fail(error)
        # After some errors (disk full) SQLite has undone the whole transaction: this raises, and the batch has failed.
        raw.execute("ROLLBACK TO unit").close()
    raw.execute("RELEASE unit").close()
