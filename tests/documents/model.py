"""A model provider on this machine, in the place of the reader's: it speaks chat completions, and says and calls what a page has given it
to. As a receiver of webhooks it refuses everything."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

USAGE = {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150}


@contextmanager
def model_provider(given: Path) -> Iterator[str]:
    """Its base URL. `given` is a file of JSON lines `{"input", "says", "calls": [{"name", "arguments"}]}`, the later ones first: what is
    answered to an input, before anything else is said. To any other input the model says that it is done."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if not self.path.endswith("/chat/completions"):
                self.send_error(404)
                return
            self.send_response(200)
            if not request.get("stream"):
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(_whole(*_reply(request["messages"], given))).encode())
                return
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for chunk in _reply(request["messages"], given):
                self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        serving.join()


def _reply(messages: list[dict[str, Any]], given: Path) -> Iterator[dict[str, Any]]:
    answered = messages[-1]["role"] == "tool"
    asked = [_text(message) for message in messages if message["role"] == "user"][-1]
    lines = given.read_text(encoding="utf-8").splitlines() if given.exists() else []
    rules = [rule for rule in map(json.loads, reversed(lines)) if rule["input"] == asked]
    rule = rules[0] if rules and not answered else {"says": "That is done.", "calls": []}
    calls = [
        {"index": index, "id": f"call_{index}", "type": "function", "function": {**call}}
        for index, call in enumerate(rule["calls"])
    ]
    delta: dict[str, Any] = {"role": "assistant", "content": rule["says"]}
    if calls:
        delta["tool_calls"] = calls
    base = {"id": "reply", "object": "chat.completion.chunk", "created": 0, "model": "stand-in"}
    yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    yield {**base, "choices": [], "usage": USAGE}


def _whole(said: dict[str, Any], ended: dict[str, Any], spent: dict[str, Any]) -> dict[str, Any]:
    """The reply in one piece, for clients that do not stream."""
    [begun], [stopped] = said["choices"], ended["choices"]
    choice = {"index": 0, "message": begun["delta"], "finish_reason": stopped["finish_reason"]}
    return {**said, "object": "chat.completion", "choices": [choice], "usage": spent["usage"]}


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
