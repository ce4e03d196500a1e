"""Upgrades a database to the newest revision. Imports Alembic, so check revision.py first."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres.queue_install import install_queue
from infrastructure.persistence.schema.revision import FIRST, is_current, plain_engine, stands_at_head, stored_revisions

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_LOCK = 0x64726D6E
"""Key of the advisory lock: of several starting processes, one migrates."""


def upgrade(database_url: str) -> bool:
    """Apply missing revisions in one transaction. False if none was missing. Raises UNAVAILABLE
    `storage_unavailable`, `schema_too_old` for a database below the first revision, and
    `schema_unknown` for one migrated by newer code."""
    if is_current(database_url):
        return False
    engine = plain_engine(database_url)
    try:
        with engine.begin() as connection:
            if connection.dialect.name != "sqlite":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                if stands_at_head(connection):
                    return False  # another process has upgraded it
            _refuse_older(connection)
            command.upgrade(configuration(connection), "head")
            if connection.dialect.name != "sqlite":
                install_queue(connection)
    except DBAPIError as error:
        raise unusable(error) from error
    except CommandError as error:
        raise ServiceError(
            "schema_unknown",
            ErrorKind.UNAVAILABLE,
            "The database was last used by another version of Dragoman, with a schema unknown to this version.",
        ) from error
    finally:
        engine.dispose()
    return True


def _refuse_older(connection: Connection) -> None:
    older = [revision for revision in stored_revisions(connection) if revision < FIRST]
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
