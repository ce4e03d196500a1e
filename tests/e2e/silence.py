"""A line to PostgreSQL that can fall silent for the connections that listen, without an end that
anybody would notice."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from sqlalchemy import make_url

_CHUNK = 65_536


@dataclass(slots=True)
class Line:
    """`url` leads to the database. `is_silent`: nothing more arrives on connections that have said
    LISTEN, in neither direction, nor on those that will."""

    url: str
    is_silent: threading.Event = field(default_factory=threading.Event)
    swallowed: threading.Event = field(default_factory=threading.Event)
    """Something was held back."""


@contextmanager
def line_to(url: str) -> Iterator[Line]:
    """Open it."""
    target = make_url(url)
    host = str(target.query.get("host") or target.host or "127.0.0.1")
    port = int(target.port or 5432)
    with socket.create_server(("127.0.0.1", 0)) as server:
        query = {name: value for name, value in target.query.items() if name not in ("host", "port")}
        here = target.set(host="127.0.0.1", port=server.getsockname()[1], query=query)
        line = Line(here.render_as_string(hide_password=False))
        threading.Thread(target=_accept, args=(server, host, port, line), daemon=True).start()
        yield line


def _accept(server: socket.socket, host: str, port: int, line: Line) -> None:
    with suppress(OSError):
        while True:
            near, _ = server.accept()
            if host.startswith("/"):
                far = socket.socket(socket.AF_UNIX)
                far.connect(f"{host}/.s.PGSQL.{port}")
            else:
                far = socket.create_connection((host, port))
            threading.Thread(target=_join, args=(near, far, line), daemon=True).start()


def _join(near: socket.socket, far: socket.socket, line: Line) -> None:
    """Carry both ways, until both ends have finished."""
    listens = threading.Event()
    with near, far:
        back = threading.Thread(target=_carry, args=(far, near, listens, line), daemon=True)
        back.start()
        _carry(near, far, listens, line)
        back.join()


def _carry(source: socket.socket, sink: socket.socket, listens: threading.Event, line: Line) -> None:
    with suppress(OSError):
        while part := source.recv(_CHUNK):
            if b"LISTEN " in part:
                listens.set()
            if listens.is_set() and line.is_silent.is_set():
                line.swallowed.set()
            else:
                sink.sendall(part)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
