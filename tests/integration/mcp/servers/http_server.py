"""An MCP server over streamable HTTP (2025-11-25, standard library only) that remembers its
sessions as long as it lives.

`http_server.py PORT` (0: any) prints the port it listens on.
"""

import json
import os
import socket
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SESSION_HEADER = "mcp-session-id"
SESSIONS: set[str] = set()


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            info = {"name": "http", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "hang")]}
        case "tools/call":
            if params["name"] == "hang":
                threading.Event().wait()
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
        case "ping":
            return {}
        case _:
            return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session = self.headers.get(SESSION_HEADER)
        if message["method"] == "initialize":
            session = uuid.uuid4().hex
            SESSIONS.add(session)
        elif message["method"] == "server/discover":
            self.answer(400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "No."}})
            return
        elif session not in SESSIONS:
            self.answer(404, None)
            return
        if "id" not in message:
            self.answer(202, None)
            return
        result = result_of(message["method"], message.get("params", {}))
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        reply |= {"error": {"code": -32601, "message": "No."}} if result is None else {"result": result}
        self.answer(200, reply, session)

    def do_GET(self) -> None:
        self.answer(405, None)

    def do_DELETE(self) -> None:
        SESSIONS.discard(self.headers.get(SESSION_HEADER, ""))
        self.answer(204, None)

    def answer(self, status: int, body: dict[str, Any] | None, session: str | None = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if session is not None:
            self.send_header(SESSION_HEADER, session)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def server_bind(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        # The standard library asks the resolver for the host's name here, which may take seconds.
        self.server_name, self.server_port = "localhost", self.socket.getsockname()[1]


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()
