"""Upgrades a database to the newest revision. Imports Alembic, so check revision.py first."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.script.revision import RevisionError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres.queue_install import install_queue
from infrastructure.persistence.schema.revision import (
    FIRST,
    HEAD,
    WORKS_WITH,
    StoredSchema,
    declare_code,
    plain_engine,
    stored_schema,
    suits,
)
from infrastructure.persistence.schema.running_code import UpgradePlan, running_revisions

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_LOCK = 0x64726D6E
"""Key of the advisory lock: of several starting processes, one migrates."""
_LOCK_TIMEOUT = text("SET LOCAL lock_timeout = '3s'")
"""A change of a table waits for transactions that use it, and all later ones wait behind the
change."""
_TRIES = 20
_IN_USE = frozenset({"55P03", "40P01"})
"""lock_not_available and deadlock_detected (PostgreSQL, Appendix A)."""


def plan(database_url: str) -> UpgradePlan:
    """What an upgrade would do. Changes nothing. Raises as `upgrade`."""
    with _connected(database_url) as connection:
        return _planned(connection)


def upgrade(database_url: str, *, despite_running: bool = False) -> bool:
    """Apply missing revisions in one transaction. False if none was missing, or if a newer version
    has upgraded the database to a schema that works with this code. Raises UNAVAILABLE
    `storage_unavailable`, `schema_too_old` for a database below the first revision,
    `schema_unknown` for one that newer code has made unusable for this code, and CONFLICT
    `older_processes_running` if running processes could not work with the new schema, unless
    `despite_running`."""
    for _ in range(_TRIES - 1):
        with suppress(_TableInUse):
            return _upgraded(database_url, despite_running=despite_running, is_last=False)
    return _upgraded(database_url, despite_running=despite_running, is_last=True)


class _TableInUse(Exception):
    """A table could not be locked in time; nothing has changed."""


def _upgraded(database_url: str, *, despite_running: bool, is_last: bool) -> bool:
    with _connected(database_url) as connection:
        try:
            return _upgrade(connection, despite_running=despite_running)
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) not in _IN_USE or is_last:
                raise
            raise _TableInUse from error


def _upgrade(connection: Connection, *, despite_running: bool) -> bool:
    is_server = connection.dialect.name != "sqlite"
    if is_server:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        connection.execute(_LOCK_TIMEOUT)
    if suits(connection):
        return False  # nothing to do, or another process has done it
    planned = _planned(connection)
    if planned.must_stop and not despite_running:
        raise _must_stop(planned)
    if planned.pending:
        command.upgrade(configuration(connection), "head")
        declare_code(connection)
    if is_server:
        install_queue(connection)
    return True


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    engine = plain_engine(database_url)
    try:
        with engine.begin() as connection:
            yield connection
    except DBAPIError as error:
        raise unusable(error) from error
    finally:
        engine.dispose()


def _planned(connection: Connection) -> UpgradePlan:
    stored = stored_schema(connection)
    _refuse_older(stored)
    return UpgradePlan(
        stored=stored.revisions,
        pending=() if stored.suits else _missing(connection, stored),
        running=running_revisions(connection),
    )


def _missing(connection: Connection, stored: StoredSchema) -> tuple[str, ...]:
    """The revisions after the stored one, oldest first."""
    scripts = ScriptDirectory.from_config(configuration(connection))
    try:
        chain = [script.revision for script in scripts.iterate_revisions("head", stored.revisions or "base")]
    except RevisionError as error:
        raise _unknown(stored) from error
    return tuple(reversed(chain))


def _unknown(stored: StoredSchema) -> ServiceError:
    """Newer code has upgraded the database beyond this code."""
    needed = ""
    if stored.works_with[-1:] == stored.revisions and stored.works_with[0] not in WORKS_WITH:
        needed = f" It needs a version that has schema revision {stored.works_with[0]}, which this one, of revision {HEAD}, lacks."
    return ServiceError(
        "schema_unknown",
        ErrorKind.UNAVAILABLE,
        f"The database was last used by another version of Dragoman, with schema revision {', '.join(stored.revisions)},"
        f" which is unknown to this version.{needed}",
    )


def _must_stop(planned: UpgradePlan) -> ServiceError:
    return ServiceError(
        "older_processes_running",
        ErrorKind.CONFLICT,
        f"Processes with schema revision {', '.join(planned.must_stop)} are connected, and could not work with revision {HEAD}."
        " Let them finish (`dragoman drain`), then upgrade again; `dragoman db upgrade --force` does not wait for them.",
    )


def _refuse_older(stored: StoredSchema) -> None:
    older = [revision for revision in stored.revisions if revision < FIRST]
    if older:
        raise ServiceError(
            "schema_too_old",
            ErrorKind.UNAVAILABLE,
            f"The database has schema revision {older[0]}; this version upgrades from revision {FIRST} on. First upgrade it with"
            f" a version that has revision {FIRST} and the ones before (docs/guides/upgrade.md).",
        )


def configuration(connection: Connection) -> Config:
    """Alembic's configuration for an open connection; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
