"""The other ends of a measured run, as cheap as possible: a model that asks for tools, and an MCP
server that answers.

Run as a process of its own: `python -m benchmarks.counterparts model TOOL_CALLS
[DELAY_S]|mcp|mcp-session|mcp-modern [TOOLS]` prints its port; `mcp-stdio` speaks on stdio.
"""

import asyncio
import functools
import json
import re
import sys

from benchmarks.raw_http import Answer, response, serve

TOOL = "mcp__bench__echo"
_CALL = json.dumps({"text": "hello"})
_NAMED_CALLS = re.compile(rb'"model": ?"(calls|whole)-([0-9]+)-([a-z]+)"')
_VERSION = "io.modelcontextprotocol/protocolVersion"


def model_answers(tool: str = TOOL) -> tuple[bytes, bytes]:
    """The streamed answers of a chat-completions endpoint: one that calls the tool, one that
    ends."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

    def stream(delta: dict[str, object], reason: str) -> bytes:
        first = {
            "id": "c",
            "object": "chat.completion.chunk",
            "model": "bench",
            "choices": [{"index": 0, "delta": delta}],
        }
        last = {"id": "c", "object": "chat.completion.chunk", "model": "bench"}
        end = {**last, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        total = {**last, "choices": [], "usage": usage}
        lines = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in (first, end, total))
        return response(lines + b"data: [DONE]\n\n", "text/event-stream")

    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": _CALL}}
    return stream({"role": "assistant", "tool_calls": [call]}, "tool_calls"), stream(
        {"role": "assistant", "content": "done"}, "stop"
    )


def whole_answers(tool: str) -> tuple[bytes, bytes]:
    """The same answers in one piece."""
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}

    def whole(message: dict[str, object], reason: str) -> bytes:
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
        answer = {"id": "c", "object": "chat.completion", "model": "bench", "choices": [choice], "usage": usage}
        return response(json.dumps(answer).encode())

    call = {"id": "c1", "type": "function", "function": {"name": tool, "arguments": _CALL}}
    return whole({"content": None, "tool_calls": [call]}, "tool_calls"), whole({"content": "done"}, "stop")


async def run_model(tool_calls: int, delay_s: float = 0.0) -> None:
    """Asks for the tool until the conversation holds `tool_calls` results, each time after a while.
    The model `calls-N-SERVER` asks for that server's until it holds N; `whole-N-SERVER` does so
    without streaming."""
    answers = {b"calls": functools.cache(model_answers), b"whole": functools.cache(whole_answers)}

    def answer(_: bytes, body: bytes) -> bytes:
        named = _NAMED_CALLS.search(body, 0, 200)
        kind, wanted, tool = b"calls", tool_calls, TOOL
        if named is not None:
            kind, wanted, tool = named[1], int(named[2]), f"mcp__{named[3].decode()}__echo"
        calling, done = answers[kind](tool)
        return done if body.count(b'"role":"tool"') >= wanted else calling

    await _announce(answer, delay_s=delay_s)


def mcp_reply(body: bytes, tools: int = 1) -> bytes | None:
    """The JSON-RPC answer to one message; None for a notification. `tools` are listed, of which the
    first says a text again."""
    request = json.loads(body)
    if "id" not in request:
        return None
    method = request["method"]
    if method == "tools/call":
        text = request["params"]["arguments"]["text"]
        result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": False}
        if _VERSION in request["params"].get("_meta", {}):
            result["resultType"] = "complete"
    elif method == "server/discover":
        result = {
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
            "ttlMs": 0,
            "cacheScope": "private",
        }
    elif method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bench", "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
        echo = {"name": "echo", "description": "Says it again.", "inputSchema": schema}
        result = {"tools": [echo, *({**echo, "name": f"echo_{number}"} for number in range(1, tools))]}
        if _VERSION in request.get("params", {}).get("_meta", {}):
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "Method not found"}
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}).encode()
    return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()


async def run_mcp(*, session_id: str | None = None, is_modern: bool = False, tools: int = 1) -> None:
    """Streamable HTTP with plain JSON answers: the handshake generation, with or without a session,
    or the newer one alone."""
    session = "" if session_id is None else f"\r\nMcp-Session-Id: {session_id}"
    discovering = b'"server/discover"'

    def answer(head: bytes, body: bytes) -> bytes:
        if not head.startswith(b"POST"):
            return response(b"", status="405 Method Not Allowed")
        if not is_modern and discovering in body:
            return response(b"", status="400 Bad Request")
        reply = mcp_reply(body, tools)
        return response(b"", status="202 Accepted") if reply is None else response(reply, f"application/json{session}")

    await _announce(answer)


def run_mcp_stdio() -> None:
    """The same over stdio."""
    for line in sys.stdin.buffer:
        reply = mcp_reply(line)
        if reply is not None:
            sys.stdout.buffer.write(reply + b"\n")
            sys.stdout.buffer.flush()


async def _announce(answer: Answer, *, delay_s: float = 0.0) -> None:
    server = await serve(answer, delay_s=delay_s)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    match sys.argv[1]:
        case "model":
            asyncio.run(run_model(int(sys.argv[2]), *map(float, sys.argv[3:])))
        case "mcp":
            asyncio.run(run_mcp())
        case "mcp-session":
            asyncio.run(run_mcp(session_id="bench"))
        case "mcp-modern":
            asyncio.run(run_mcp(is_modern=True, tools=int(sys.argv[2]) if len(sys.argv) > 2 else 1))
        case "mcp-stdio":
            run_mcp_stdio()
        case other:
            raise SystemExit(f"unknown counterpart {other!r}")
