"""A way to a PostgreSQL server on which connections are cut in the middle of a COMMIT."""

import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

_SOCKET = ".s.PGSQL.5432"
_CHUNK = 65536
_COMMIT = re.compile(rb"COMMIT(?!TED)")
"""The statement, and not a level of isolation."""


class CutCommits:
    """Passes everything on, but of the next `before` COMMITs nothing reaches the server, and of the
    next `after` nothing of the server's answer reaches the client; their connections end."""

    def __init__(self, listening: socket.socket, server: str) -> None:
        self._listening = listening
        self._server = server
        self.before = 0
        self.after = 0

    def serve(self) -> None:
        """Take connections until the socket is closed."""
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            threading.Thread(target=self._answers, args=(server, client), daemon=True).start()
            while data := _received(client):
                if _COMMIT.search(data) and self.before:
                    self.before -= 1
                    break
                if _COMMIT.search(data) and self.after:
                    self.after -= 1
                    # Nothing of the answer is passed on, but it is there: the server is done.
                    _ended(client)
                    server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    return
                server.sendall(data)
            _ended(client)
            _ended(server)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        while data := _received(server):
            try:
                client.sendall(data)
            except OSError:
                break
        _ended(client)


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK)
    except OSError:
        return b""


def _ended(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return


@contextmanager
def cut_commits(url: str) -> Iterator[tuple[CutCommits, str]]:
    """The way, and the URL of the same database on it."""
    parsed = make_url(url)
    host = parsed.query["host"]
    folder = Path(tempfile.mkdtemp(prefix="dragoman-cut-"))
    listening = socket.socket(socket.AF_UNIX)
    try:
        listening.bind(str(folder / _SOCKET))
        listening.listen()
        way = CutCommits(listening, f"{host}/{_SOCKET}")
        threading.Thread(target=way.serve, daemon=True).start()
        yield way, parsed.set(query={**parsed.query, "host": str(folder)}).render_as_string(hide_password=False)
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        shutil.rmtree(folder)
