"""What stands outside the service and hears secrets that are meant for it: a model provider and a
remote MCP server, which refuse and repeat them, and a tracing backend."""

import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Outside:
    """The address of all three, what was exported to the tracing backend, and the secrets the
    others were shown."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.exports: list[bytes] = []
        self.heard: list[str] = []


@contextmanager
def outside() -> Iterator[Outside]:
    """Listen on a free port of this machine until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path.endswith("/v1/traces"):
                there.exports.append(body)
                self.answer(200, b"")
                return
            shown = f"{self.path} {dict(self.headers)}"
            there.heard.append(shown)
            error = {"error": {"message": f"Wrong credentials: {shown}", "code": "invalid_api_key", "type": "invalid"}}
            self.answer(401, json.dumps(error).encode())

        def do_GET(self) -> None:
            self.answer(405, b"")

        def answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    there = Outside(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield there
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
