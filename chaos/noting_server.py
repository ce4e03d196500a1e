"""An MCP server over streamable HTTP (2025-11-25, standard library only) that writes down which
calls reached it.

    noting_server.py LOG

prints the port it listens on. Tools: `look` reads only, `note` changes something.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

READ_ONLY = {"readOnlyHint": True}
UNSAFE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
TOOLS = {"look": READ_ONLY, "note": UNSAFE}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


class Handler(BaseHTTPRequestHandler):
    """One connection; no sessions, so that any number of processes may talk to it in any order."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # an answer is one packet: a second one would wait for the acknowledgement of the first
    log_file: ClassVar[int]

    def do_POST(self) -> None:
        """One message."""
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if message["method"] == "server/discover":
            self._answer(400, {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "No."}})
        elif "id" not in message:
            self._answer(202, None)
        else:
            result = self._result(message["method"], message.get("params", {}))
            self._answer(200, {"jsonrpc": "2.0", "id": message["id"], "result": result})

    def do_GET(self) -> None:
        """No stream of its own."""
        self._answer(405, None)

    def do_DELETE(self) -> None:
        """No session to end."""
        self._answer(405, None)

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                info = {"name": "noting", "version": "1"}
                return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                tools = [{"name": n, "inputSchema": SCHEMA, "annotations": hints} for n, hints in TOOLS.items()]
                return {"tools": tools}
            case "tools/call":
                name, text = params["name"], params["arguments"].get("text", "")
                os.write(self.log_file, f"called {name} {text}\n".encode())
                return {"content": [{"type": "text", "text": f"{name} says {text}"}], "isError": False}
            case _:
                return {}

    def _answer(self, status: int, body: dict[str, Any] | None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server(ThreadingHTTPServer):
    """Takes many connections at once."""

    daemon_threads = True
    request_queue_size = 512


if __name__ == "__main__":
    Handler.log_file = os.open(Path(sys.argv[1]), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
