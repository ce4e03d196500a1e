"""The revision of a database: one query, so that a start on a current database does not import Alembic."""

from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres import queue_schema
from infrastructure.persistence.engine.postgres.url import driver_url
from infrastructure.persistence.engine.sqlite.database import make_private

HEAD = "0068"
"""The revision of the tables."""
FIRST = "0031"
"""The oldest revision that can be upgraded."""

_stored = text("SELECT version_num FROM alembic_version")
_POSTGRES = ("postgres:", "postgresql:", "postgresql+psycopg:")


def is_current(database_url: str) -> bool:
    """Whether the schema has the revision of this code. Raises UNAVAILABLE `storage_unavailable`."""
    engine = plain_engine(database_url)
    try:
        with engine.connect() as connection:
            return stands_at_head(connection)
    except DBAPIError as error:
        raise unusable(error) from error
    finally:
        engine.dispose()


def stands_at_head(connection: Connection) -> bool:
    """As `is_current`, for an open connection."""
    if stored_revisions(connection) != [HEAD]:
        return False
    return connection.dialect.name == "sqlite" or queue_schema.stored_version(connection) == queue_schema.VERSION


def stored_revisions(connection: Connection) -> list[str]:
    """The stored revisions; empty without any."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return []
    return [str(revision) for revision in connection.execute(_stored).scalars()]


def plain_engine(database_url: str) -> Engine:
    """An engine without a pool, for single tasks; its transactions include schema changes on SQLite."""
    if database_url.startswith(_POSTGRES):
        return create_engine(driver_url(database_url), poolclass=NullPool, hide_parameters=True)
    engine = create_engine(database_url, poolclass=NullPool, hide_parameters=True)
    if engine.url.database:
        make_private(Path(engine.url.database))

    @event.listens_for(engine, "connect")
    def no_implicit_transactions(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
