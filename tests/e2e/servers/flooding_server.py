"""An MCP server (2025-11-25, standard library only) that, once it has listed its tools, says
without end what its first argument names. The second is `stdio`, or `http` or `sse`: then it prints
the port on which it listens."""

import json
import os
import queue
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

KINDS = ("unread", "pings", "questions", "logs", "changes", "invalid", "noise", "ids", "answers", "large")
KINDS_OVER_STDIO = (*KINDS, "stderr")
"""Of the last, the blank lines are on its error output."""
ONLY_IN_EVENTS = {"noise": b":\n\n", "ids": b"id: 1\n\n"}
"""Events without a message; over stdio these kinds are blank lines."""
_AT_ONCE = 500


def line_of(kind: str, number: int) -> bytes:
    message: dict[str, Any]
    match kind:
        case "unread" | "pings":
            message = {"id": number, "method": "ping"}
        case "questions":
            message = {"id": number, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
        case "logs":
            message = {"method": "notifications/message", "params": {"level": "info", "data": "x" * 200}}
        case "changes":
            message = {"method": "notifications/tools/list_changed"}
        case "invalid":
            message = {"method": "notifications/progress", "params": {"progress": "much"}}
        case "answers":
            message = {"id": f"call-{number}", "result": {}}
        case "large":
            message = {"method": "notifications/message", "params": {"level": "info", "data": [[1]] * 400_000}}
        case _:
            return b""
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def flood(kind: str) -> Iterator[list[bytes]]:
    """Lines without end, many at a time."""
    numbers = count(1)
    if kind == "large":
        large = line_of(kind, 0)
        while True:
            yield [large]
    while True:
        yield [line_of(kind, next(numbers)) for _ in range(_AT_ONCE)]


def answer_to(message: dict[str, Any]) -> dict[str, Any] | None:
    """None for what is answered with the flood, or not at all."""
    result: dict[str, Any]
    match message.get("method"):
        case "initialize":
            capabilities = {"tools": {"listChanged": True}, "logging": {}}
            server_info = {"name": "flooding", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server_info}
        case "tools/list":
            result = {"tools": [{"name": "flood", "inputSchema": {"type": "object"}}]}
        case "ping":
            result = {}
        case "tools/call":
            return None
        case _ if "id" in message and "method" in message:
            error = {"code": -32601, "message": "Method not found"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        case _:
            return None
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def over_stdio(kind: str) -> None:
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if (answer := answer_to(message)) is not None:
            out.write(json.dumps(answer).encode() + b"\n")
            out.flush()
        if message.get("method") == "tools/list":
            break
    if kind != "unread":
        threading.Thread(target=read_to_the_end, daemon=True).start()
    flooded = sys.stderr.buffer if kind == "stderr" else out
    for lines in flood(kind):
        flooded.write(b"\n".join(lines) + b"\n")
        flooded.flush()


def read_to_the_end() -> None:
    for _ in sys.stdin.buffer:
        pass
    os._exit(0)


def over_http(kind: str, *, is_legacy: bool) -> None:
    outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    listed = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if kind == "unread" and "method" not in message:
                threading.Event().wait()  # an answer to a ping, which is never taken
            answer = answer_to(message)
            if message.get("method") == "tools/list":
                listed.set()
            if answer is not None and is_legacy:
                outbox.put(json.dumps(answer).encode())
                if listed.is_set():
                    outbox.put(None)
            if message.get("method") == "tools/call" and not is_legacy:
                self.stream()
                self.say_without_end()
            elif answer is None or is_legacy:
                self.reply(202, b"")
            else:
                self.reply(200, json.dumps(answer).encode())

        def do_GET(self) -> None:
            self.stream()
            if is_legacy:
                self.wfile.write(b"event: endpoint\ndata: /messages\n\n")
                while (line := outbox.get()) is not None:
                    self.wfile.write(b"data: " + line + b"\n\n")
            else:
                listed.wait()
            self.say_without_end()

        def do_DELETE(self) -> None:
            self.reply(200, b"")

        def say_without_end(self) -> None:
            for lines in flood(kind):
                if kind in ONLY_IN_EVENTS:
                    self.wfile.write(ONLY_IN_EVENTS[kind] * len(lines))
                else:
                    self.wfile.write(b"".join(b"data: " + line + b"\n\n" for line in lines))

        def stream(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True

        def reply(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 100

        def handle_error(self, request: object, client_address: object) -> None:
            """Connections that the client ends are no news."""

    server = Server(("127.0.0.1", 0), Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    if sys.argv[2] == "stdio":
        over_stdio(sys.argv[1])
    else:
        over_http(sys.argv[1], is_legacy=sys.argv[2] == "sse")
