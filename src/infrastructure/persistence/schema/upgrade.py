"""Bringing a database to the newest revision. Imports Alembic, so whoever starts asks revision.py first."""

from collections.abc import Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from domain.errors import ErrorKind, ServiceError
from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres.queue_install import install_queue
from infrastructure.persistence.schema.revision import is_current, plain_engine, stands_at_head

_MIGRATIONS = Path(__file__).parents[1] / "migrations"
_LOCK = 0x64726D6E
"""Key of the advisory lock under which one of several starting processes migrates."""


def upgrade(database_url: str, *, seal: Callable[[bytes], bytes] | None = None) -> bool:
    """Apply what is missing, in one transaction. False if nothing was. `seal` encrypts what stood in clear until a revision
    (0031); without it a database that has such rows stays as it is. Raises UNAVAILABLE `storage_unavailable`, or
    `schema_unknown` for a database that newer code has migrated."""
    if is_current(database_url):
        return False
    engine = plain_engine(database_url)
    try:
        with engine.begin() as connection:
            if connection.dialect.name != "sqlite":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
                if stands_at_head(connection):
                    return False  # another process has done it meanwhile
            command.upgrade(configuration(connection, seal), "head")
            if connection.dialect.name != "sqlite":
                install_queue(connection)
    except DBAPIError as error:
        raise unusable(error) from error
    except CommandError as error:
        raise ServiceError(
            "schema_unknown",
            ErrorKind.UNAVAILABLE,
            "The database was last used by another version of Dragoman, whose schema this one does not know.",
        ) from error
    finally:
        engine.dispose()
    return True


def configuration(connection: Connection, seal: Callable[[bytes], bytes] | None = None) -> Config:
    """Alembic's configuration over an open connection; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["seal"] = seal
    return config
