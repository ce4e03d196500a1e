"""A receiver of webhooks on this machine, in threads of the test: it keeps what it gets, and
answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Hook:
    """One request."""

    id: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Hooks:
    """While `go` is not set, requests are kept waiting."""

    url: str = ""
    status: int = 204
    answer: bytes = b""
    got: list[Hook] = field(default_factory=list)
    go: threading.Event = field(default_factory=threading.Event)


@contextmanager
def hooks(path: str = "hook") -> Iterator[Hooks]:
    """A receiver at `path`; it answers 204 at once unless told otherwise."""
    receiver = Hooks()
    receiver.go.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.got.append(Hook(self.headers["webhook-id"], dict(self.headers), body))
            receiver.go.wait(60)
            with suppress(OSError):
                self.send_response(receiver.status)
                self.send_header("content-length", str(len(receiver.answer)))
                self.end_headers()
                self.wfile.write(receiver.answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/{path}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.go.set()
        server.shutdown()
        thread.join()
        server.server_close()
