"""A model provider on this machine in the place of OpenAI's: what it says follows a script, what it
costs the price list."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Json = dict[str, Any]


@contextmanager
def priced_model(scripts: Mapping[str, Sequence[Json]]) -> Iterator[str]:
    """Its base URL. `scripts` are turns (`{text, calls: [{tool, arguments}], usage: {input_tokens,
    output_tokens, cached_tokens}}`) by the instructions of the agent whose turns they are; each
    message of the user begins anew with the first."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            messages = request["messages"]
            told = json.dumps(messages[0], ensure_ascii=False)
            turns = next(turns for instructions, turns in scripts.items() if instructions in told)
            last = max(at for at, message in enumerate(messages) if message["role"] == "user")
            turn = turns[sum(message["role"] == "assistant" for message in messages[last:])]
            body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(request["model"], turn, len(messages)))
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.wfile.write(f"{body}data: [DONE]\n\n".encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _chunks(model: str, turn: Json, number: int) -> Iterator[Json]:
    calls = [
        {
            "index": index,
            "id": f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call["tool"], "arguments": json.dumps(call["arguments"])},
        }
        for index, call in enumerate(turn["calls"])
    ]
    delta = {"role": "assistant", "content": turn["text"], **({"tool_calls": calls} if calls else {})}
    base = {"id": "reply", "object": "chat.completion.chunk", "created": 0, "model": model}
    yield {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    spent = turn.get("usage", {"input_tokens": 620, "output_tokens": 18})
    usage = {
        "prompt_tokens": spent["input_tokens"],
        "completion_tokens": spent["output_tokens"],
        "total_tokens": spent["input_tokens"] + spent["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": spent.get("cached_tokens", 0)},
    }
    yield {**base, "choices": [], "usage": usage}
