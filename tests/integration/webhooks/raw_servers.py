"""Servers on this machine that do not behave."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Chatty(socketserver.StreamRequestHandler):
    """Greets, as a mail server does."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail.example.com ESMTP\r\n")


class Silent(socketserver.StreamRequestHandler):
    """Listens until the other side has gone."""

    def handle(self) -> None:
        while self.rfile.read(1):
            pass


class Endless(socketserver.StreamRequestHandler):
    """Does not stop talking while somebody listens."""

    def handle(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65_536)


@contextmanager
def listening(handler: type[socketserver.StreamRequestHandler]) -> Iterator[int]:
    """A server of that kind, in threads that end with it; its port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
