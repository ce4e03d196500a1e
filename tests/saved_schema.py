"""The schema that upgrades begin with, as the service of revision 0031 (commit 0ee4568) created it:
its script for SQLite, and a dump of the schema `public` on PostgreSQL."""

import sqlite3
from pathlib import Path

import psycopg
from sqlalchemy import make_url

from infrastructure.persistence.schema.new_database import statements_of

FOLDER = Path(__file__).resolve().parent / "fixtures" / "saved_runs"
REVISION = "0031"


def create_saved_schema(url: str) -> None:
    """Create it in an empty database. On PostgreSQL the roles exist already."""
    stamp = f"INSERT INTO alembic_version (version_num) VALUES ('{REVISION}')"  # a constant
    if url.startswith("sqlite"):
        script = (FOLDER / f"{REVISION}.sqlite.sql").read_text(encoding="utf-8")
        connection = sqlite3.connect(str(make_url(url).database))
        for statement in statements_of(script):
            connection.execute(statement)
        connection.execute(stamp)
        connection.commit()
        connection.close()
    else:
        dump = (FOLDER / f"{REVISION}.postgresql.sql").read_text(encoding="utf-8")
        with psycopg.connect(url) as server:
            server.execute(f"{dump}\n{stamp}".encode())
