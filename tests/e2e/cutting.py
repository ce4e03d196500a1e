"""A relay that cuts connections in the middle of responses, as bad networks do."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_PART = 64 * 1024


@dataclass(slots=True)
class Relay:
    """A running relay. `cut` are the first lines of requests whose responses it cut."""

    url: str
    cut: list[str] = field(default_factory=list)


@contextmanager
def cutting(service_url: str, budget: Callable[[str], int | None]) -> Iterator[Relay]:
    """Relay to the service. Of the response to a request whose first line is given, at most
    `budget` bytes get through, then both sides see a reset connection; None lets all through. Each
    connection carries one request."""
    address = urlsplit(service_url)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            request = _request(self.request)
            if request is None:
                return
            first = request.partition(b"\r\n")[0].decode()
            with socket.create_connection((address.hostname, address.port)) as upstream:
                upstream.sendall(request)
                left = budget(first)
                with suppress(OSError):
                    while data := upstream.recv(_PART):
                        self.request.sendall(data if left is None else data[:left])
                        if left is not None and (left := left - len(data)) <= 0:
                            relay.cut.append(first)
                            for side in (upstream, self.request):
                                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                            return

    class Server(ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        relay = Relay(f"http://127.0.0.1:{server.server_address[1]}")
        relaying = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        relaying.start()
        try:
            yield relay
        finally:
            server.shutdown()
            relaying.join()


def _request(connection: socket.socket) -> bytes | None:
    """A whole request, which asks for a connection of its own; None if the client left."""
    received = b""
    while b"\r\n\r\n" not in received:
        data = connection.recv(_PART)
        if not data:
            return None
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
    length = next((int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    while len(body) < length:
        body += connection.recv(_PART)
    return b"\r\n".join([*lines, b"Connection: close", b"", body])
