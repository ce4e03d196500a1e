"""Creates the schema of a new SQLite database at once, from schema.sql instead of the revisions.

The revisions define the schema: the script is generated from them, and a test compares both. If
the script has another revision than this code, the revisions are applied. On PostgreSQL they
always are, because they also create roles and rights.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from infrastructure.persistence.engine.database import unusable
from infrastructure.persistence.schema.revision import HEAD, declare_code, plain_engine

SCRIPT = Path(__file__).with_name("schema.sql")
_STAMP = "-- revision "

_objects = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid")
_stamp = text("INSERT INTO alembic_version (version_num) VALUES (:revision)")


def made_at_once(database_url: str) -> bool:
    """Whether the database was empty and now has the schema. Raises UNAVAILABLE
    `storage_unavailable`."""
    script = SCRIPT.read_text(encoding="utf-8")
    if revision_of(script) != HEAD:
        return False
    engine = plain_engine(database_url)
    try:
        with engine.begin() as connection:
            if connection.execute(_objects).first() is not None:
                return False
            for statement in statements_of(script):
                connection.exec_driver_sql(statement)
            connection.execute(_stamp, {"revision": HEAD})
            declare_code(connection)
    except DBAPIError as error:
        raise unusable(error) from error
    finally:
        engine.dispose()
    return True


def revision_of(script: str) -> str:
    """The revision of a script's schema."""
    return script.partition("\n")[0].removeprefix(_STAMP)


def statements_of(script: str) -> Iterator[str]:
    """Its statements. Statements of a trigger belong to it: SQLite decides where one ends."""
    statement = ""
    for line in script.splitlines(keepends=True)[1:]:
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


def script_of(connection: Connection) -> str:
    """The script that creates the schema of an SQLite database at HEAD."""
    found = [(str(row.name), str(row.sql)) for row in connection.execute(_objects)]
    virtual = {name for name, sql in found if sql.startswith("CREATE VIRTUAL TABLE")}
    return "".join(
        [f"{_STAMP}{HEAD}\n", *(f"{_tidied(sql)};\n" for name, sql in found if not _belongs_to(name, virtual))]
    )


def _belongs_to(name: str, virtual: Iterable[str]) -> bool:
    """Whether SQLite created the table for a virtual table."""
    return any(name.startswith(f"{table}_") for table in virtual)


def _tidied(sql: str) -> str:
    return "\n".join(line.rstrip() for line in sql.splitlines())
