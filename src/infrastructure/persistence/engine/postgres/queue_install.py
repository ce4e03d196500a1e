"""Makes the queue on PostgreSQL: the library's schema or what is missing of it, and the functions
by which runs are submitted and taken. Above: `upgrade`."""

import logging
from importlib.metadata import distribution
from pathlib import Path

import psycopg
from sqlalchemy import Connection, text
from sqlalchemy.exc import OperationalError

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.postgres.queue_functions import functions
from infrastructure.persistence.engine.postgres.queue_schema import (
    LIBRARY_SCHEMA,
    SCHEMA,
    VERSION,
    stored_version,
    suits,
)

logger = logging.getLogger(__name__)


def install_queue(connection: Connection) -> None:
    """Make the queue what it should be, in the caller's transaction, after the roles are there.
    Raises UNAVAILABLE `schema_unknown` for a queue of newer code, `storage_unavailable`, and
    OperationalError if a table could not be locked in time."""
    if suits(connection):
        return
    stored = stored_version(connection)
    if stored is not None and _number(stored) > _number(VERSION):
        raise ServiceError(
            "schema_unknown",
            ErrorKind.UNAVAILABLE,
            "The database was last used by another version of Dragoman, whose queue this one does not know.",
        )
    scripts = [_script("schema.sql")] if stored is None else _migrations(after=_number(stored)[0])
    tables = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
    try:
        _apply(connection, (*scripts, functions(tables)))
    except psycopg.errors.LockNotAvailable as error:
        raise OperationalError(None, None, error) from error
    except psycopg.Error as error:
        logger.error("the run queue cannot be made: %s", error)
        raise ServiceError(
            "storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot be used; the line before says why."
        ) from error


def _apply(connection: Connection, scripts: tuple[str, ...]) -> None:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"{raw!r} is not a connection to PostgreSQL")
    search_path = connection.execute(text("SELECT current_setting('search_path')")).scalar_one()
    raw.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}".encode())
    raw.execute(f"SET LOCAL search_path TO {SCHEMA}".encode())
    for script in scripts:
        # Without parameters: then a message may hold many statements, and percent signs mean
        # themselves.
        raw.execute(script.encode(), prepare=False)
    connection.execute(text("SELECT set_config('search_path', :before, true)"), {"before": search_path})


def installed_library_schema() -> str:
    """The newest migration that the installed library brings."""
    return _names()[-1][: len(LIBRARY_SCHEMA)]


def _number(version: str) -> tuple[str, int]:
    library, _, ours = version.partition("/")
    return library, int(ours or 0)


def _migrations(*, after: str) -> list[str]:
    return [_script(f"migrations/{name}") for name in _names() if after < name[: len(LIBRARY_SCHEMA)] <= LIBRARY_SCHEMA]


def _names() -> list[str]:
    return sorted(path.name for path in _folder().joinpath("migrations").glob("*.sql"))


def _script(name: str) -> str:
    return _folder().joinpath(name).read_text(encoding="utf-8")


def _folder() -> Path:
    """Where the library keeps its SQL; found without importing it."""
    return Path(str(distribution("procrastinate").locate_file("procrastinate/sql")))
