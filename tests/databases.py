"""Real databases for tests: a file or a PostgreSQL database each, copied from a template that is
migrated once."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from infrastructure.persistence.engine.postgres.queue_schema import SCHEMA
from infrastructure.persistence.engine.postgres.roles import REQUEST_ROLE, SYSTEM_ROLE
from infrastructure.persistence.schema.upgrade import upgrade
from infrastructure.persistence.tables import metadata
from tests.embedded_postgres import embedded_server

POSTGRES_URL_VARIABLE = "DRAGOMAN_TEST_POSTGRES_URL"


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


class SqliteFiles:
    """SQLite files in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template.db"
        self._count = 0
        upgrade(sqlite_url(self._template))

    def fresh(self) -> Path:
        """A new migrated file."""
        self._count += 1
        path = self._folder / f"{self._count}.db"
        shutil.copyfile(self._template, path)
        return path


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresUser:
    """Who may log in."""

    name: str
    password: str

    def of(self, url: str) -> str:
        """The URL of a database, as this user."""
        return make_url(url).set(username=self.name, password=self.password).render_as_string(hide_password=False)


class PostgresDatabases:
    """Databases of one PostgreSQL server, named by the URL of any of its databases with the right
    to create others, and roles. They are used as an ordinary user, who owns nothing, bypasses
    nothing and inherits nothing."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._prefix = f"dragoman_test_{os.getpid()}"
        self._user = PostgresUser(name=f"{self._prefix}_user", password=secrets.token_hex(16))
        self._count = 0
        self._free: list[str] = []
        self._kept = ExitStack()

    @contextmanager
    def prepared(self) -> Iterator["PostgresDatabases"]:
        """With the template and the ordinary user in place."""
        with self.empty(self._template):
            upgrade(self._url(self._template))
            with (
                self._made(self._user, "NOINHERIT", REQUEST_ROLE, SYSTEM_ROLE),
                self._kept,
            ):
                yield self

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """The ordinary user's URL of a migrated database without a row. Emptying one is much
        cheaper than making another."""
        url = self._free.pop() if self._free else self._kept.enter_context(self._copied())
        yield self._user.of(url)
        self.empty_of_rows(url)
        self._free.append(url)

    @contextmanager
    def apart(self) -> Iterator[str]:
        """The ordinary user's URL of a migrated database that no other test had or will have:
        its planner knows only what this one's rows taught it."""
        with self._copied() as url:
            yield self._user.of(url)

    def empty_of_rows(self, url: str) -> None:
        """Delete all rows of a migrated database, whoever's URL of it this is; in one message to
        the server."""
        # The queue's own triggers name its tables without their schema.
        deleting = [sql.SQL("SET search_path TO public, {}").format(sql.Identifier(SCHEMA))]
        deleting += [
            sql.SQL("DELETE FROM {}").format(sql.Identifier(table.name)) for table in reversed(metadata.sorted_tables)
        ]
        deleting += [
            sql.SQL("DELETE FROM {}").format(sql.Identifier(SCHEMA, table))
            for table in ("procrastinate_jobs", "procrastinate_workers", "dragoman_share")
        ]
        with psycopg.connect(self.owner_url(url)) as connection:
            connection.execute(sql.SQL("; ").join(deleting))

    def owner_url(self, url: str) -> str:
        """The URL of a database as who owns it, whoever's URL of it this is."""
        return self._url(str(make_url(url).database))

    def user_url(self, url: str) -> str:
        """The ordinary user's URL of a database."""
        return self._user.of(url)

    def end_sessions(self, *, wait_s: float = 0) -> None:
        """End all that the ordinary user has open, and wait up to `wait_s` for each to be gone."""
        ended = sql.SQL("SELECT pg_terminate_backend(pid, {}) FROM pg_stat_activity WHERE usename = {}")
        self._execute(ended.format(int(wait_s * 1000), self._user.name))

    def admit(self, connections: int) -> None:
        """How many connections the ordinary user may open; -1 for any number. Open ones stay."""
        limit = sql.SQL("ALTER ROLE {} CONNECTION LIMIT {}")
        self._execute(limit.format(sql.Identifier(self._user.name), sql.Literal(connections)))

    @contextmanager
    def user(self, attributes: str, *memberships: str) -> Iterator["PostgresUser"]:
        """Another user of the server, who owns nothing any more when it is taken away."""
        self._count += 1
        user = PostgresUser(name=f"{self._prefix}_user_{self._count}", password=secrets.token_hex(16))
        with self._made(user, attributes, *memberships):
            yield user

    @contextmanager
    def _made(self, user: "PostgresUser", attributes: str, *memberships: str) -> Iterator[None]:
        create = sql.SQL("CREATE ROLE {} LOGIN {} PASSWORD {}")
        self._execute(create.format(sql.Identifier(user.name), sql.SQL(attributes), user.password))
        try:
            for membership in memberships:
                grant = sql.SQL("GRANT {} TO {}")
                self._execute(grant.format(sql.Identifier(membership), sql.Identifier(user.name)))
            yield
        finally:
            self._execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(user.name)))

    @contextmanager
    def _copied(self) -> Iterator[str]:
        self._count += 1
        with self._created(f"{self._prefix}_{self._count}", template=self._template) as url:
            yield url

    @contextmanager
    def empty(self, name: str | None = None, *, owner: str | None = None) -> Iterator[str]:
        """The URL of a new database without any table."""
        self._count += 1
        with self._created(name or f"{self._prefix}_{self._count}", template="template0") as url:
            if owner is not None:
                change = sql.SQL("ALTER DATABASE {} OWNER TO {}")
                self._execute(change.format(sql.Identifier(str(make_url(url).database)), sql.Identifier(owner)))
            yield url

    @property
    def _template(self) -> str:
        return f"{self._prefix}_template"

    @contextmanager
    def _created(self, name: str, *, template: str) -> Iterator[str]:
        create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self._execute(create.format(sql.Identifier(name), sql.Identifier(template)))
        try:
            yield self._url(name)
        finally:
            self._execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(statement)

    def _url(self, name: str) -> str:
        return make_url(self._server_url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of the server the tests may use: the one the environment names, else an embedded
    one."""
    named = os.environ.get(POSTGRES_URL_VARIABLE)
    if named:
        yield named
        return
    folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
    try:
        with embedded_server(folder / "data") as server:
            url = server.get_uri()
            with psycopg.connect(url, autocommit=True) as connection:
                # Its data does not outlive the tests: nothing needs to reach the disk.
                for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                    connection.execute(sql.SQL("ALTER SYSTEM SET {} = off").format(sql.Identifier(setting)))
                connection.execute("SELECT pg_reload_conf()")
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)
