"""The revision of a database: one query, so that a start on a current database does not import
Alembic."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry

from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.engine.postgres import queue_schema
from infrastructure.persistence.engine.postgres.url import driver_url
from infrastructure.persistence.engine.sqlite.database import make_private
from infrastructure.persistence.engine.sqlite.vacuum import IN_STEPS

HEAD = "0111"
"""The revision of the tables."""
WORKS_WITH = (
    "0067",
    "0074",
    "0069",
    "0072",
    "0075",
    "0079",
    "0077",
    "0076",
    "0078",
    "0082",
    "0097",
    "0083",
    "0109",
    "0106",
    "0101",
    "0107",
    "0129",
    "0102",
    "0110",
    "0112",
    "0113",
    "0114",
    "0103",
    "0108",
    "0104",
    "0111",
)
"""Revisions whose code works with the tables of HEAD: HEAD, and those before it down to the last
contract step. See ADR 0085."""
OLDER = (
    "0031",
    "0032",
    "0034",
    "0038",
    "0035",
    "0037",
    "0039",
    "0044",
    "0048",
    "0049",
    "0040",
    "0042",
    "0055",
    "0050",
    "0051",
    "0054",
    "0056",
    "0057",
    "0060",
    "0066",
    "0068",
)
"""Revisions before those of WORKS_WITH."""
FIRST = OLDER[0]
"""The oldest revision that can be upgraded. Those before it have lower numbers, and no later one
has."""

_stored = text("SELECT * FROM alembic_version")  # older schemas have one column
_declare = text("UPDATE alembic_version SET works_with = :revisions")
_POSTGRES = ("postgres:", "postgresql:", "postgresql+psycopg:")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSchema:
    """The revisions that a database has (one, or none), and those whose code works with it, itself
    last."""

    revisions: tuple[str, ...] = ()
    works_with: tuple[str, ...] = ()

    @property
    def is_compatible(self) -> bool:
        """Whether newer code has upgraded it, and declared that it works with this code."""
        return self.revisions == self.works_with[-1:] != (HEAD,) and HEAD in self.works_with

    @property
    def is_older(self) -> bool:
        """Whether this code upgrades it. Numbers of revisions do not tell: they are not in
        order."""
        return (
            bool(self.revisions)
            and {HEAD}.isdisjoint(self.revisions)
            and {*OLDER, *WORKS_WITH}.issuperset(self.revisions)
        )

    @property
    def suits(self) -> bool:
        """Whether this code works with it."""
        return self.revisions == (HEAD,) or self.is_compatible


def is_current(database_url: str) -> bool:
    """Whether this code works with the schema as it is. Raises UNAVAILABLE
    `storage_unavailable`."""
    engine = plain_engine(database_url)
    try:
        with engine.connect() as connection:
            return suits(connection)
    except DBAPIError as error:
        raise unusable(error) from error
    finally:
        engine.dispose()


def suits(connection: Connection) -> bool:
    """As `is_current`, for an open connection."""
    if not stored_schema(connection).suits:
        return False
    return connection.dialect.name == "sqlite" or queue_schema.suits(connection)


def stored_schema(connection: Connection) -> StoredSchema:
    """What the database says of its schema."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return StoredSchema()
    rows = connection.execute(_stored).mappings().all()
    works_with = " ".join(str(row.get("works_with", "")) for row in rows)
    return StoredSchema(revisions=tuple(str(row["version_num"]) for row in rows), works_with=tuple(works_with.split()))


def declare_code(connection: Connection) -> None:
    """Store for processes of other revisions whether they work with the schema of this one."""
    connection.execute(_declare, {"revisions": " ".join(WORKS_WITH)})


def plain_engine(database_url: str) -> Engine:
    """An engine without a pool, for single tasks; its transactions include schema changes on
    SQLite."""
    if database_url.startswith(_POSTGRES):
        return create_engine(driver_url(database_url), poolclass=NullPool, hide_parameters=True)
    engine = create_engine(database_url, poolclass=NullPool, hide_parameters=True)
    if engine.url.database:
        make_private(Path(engine.url.database))

    @event.listens_for(engine, "connect")
    def no_implicit_transactions(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        connection.execute(f"PRAGMA {IN_STEPS}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine
