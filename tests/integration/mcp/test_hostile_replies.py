"""Replies of remote servers that are too large or not valid text, over each way a remote reply can
come."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.mcp.server import McpServer, McpServerKind
from tests.e2e.processes import resident_bytes
from tests.integration.mcp.parts import IN_RUN, a_call, remote, sdk_connections, text_of

MIB = 1024 * 1024
LIMIT = 4 * MIB
MEGABYTE = b"x" * 1_000_000


def result(request_id: object, text: str) -> bytes:
    content = {"content": [{"type": "text", "text": text}], "isError": False}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "result": content}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def reply(message: dict[str, Any]) -> Iterable[bytes]:
    """A server of 2025-03-26, as the pieces of its JSON."""
    request_id, params = message["id"], message.get("params", {})
    if message["method"] == "initialize":
        info = {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "h", "version": "1"},
        }
        return [json.dumps({"jsonrpc": "2.0", "id": request_id, "result": info}).encode()]
    if message["method"] == "tools/list":
        listed = {"tools": [{"name": "size", "inputSchema": {"type": "object"}}]}
        return [json.dumps({"jsonrpc": "2.0", "id": request_id, "result": listed}).encode()]
    if message["method"] != "tools/call":
        refusal = {"jsonrpc": "2.0", "id": request_id, "error": {"code": -32601, "message": "Method not found"}}
        return [json.dumps(refusal).encode()]
    match params["name"]:
        case "size":
            begin, _, end = result(request_id, "MARK").partition(b"MARK")
            return [begin, *[MEGABYTE] * params["arguments"]["megabytes"], end]
        case "invalid_utf8":
            return [result(request_id, "MARK").replace(b"MARK", b"caf\xe9 \xff\xfe")]
        case "half_surrogate":
            return [result(request_id, "MARK").replace(b"MARK", b"cut \\ud83d")]
        case "control":
            return [result(request_id, "MARK").replace(b"MARK", b"\\u001b[31mred\\u0000\\u0007 \\u009b2J")]
        case "not_json":
            return [b'{"jsonrpc": "2.0", "id": ' + json.dumps(request_id).encode() + b', "result": {"content": [']
        case _:
            return [result(request_id, "fine")]


Frame = Callable[[Iterable[bytes]], Iterable[bytes]]


def as_event(pieces: Iterable[bytes]) -> Iterable[bytes]:
    yield b"event: message\r\ndata: "
    yield from pieces
    yield b"\r\n\r\n"


def as_it_is(pieces: Iterable[bytes]) -> Iterable[bytes]:
    return pieces


class HostileServer:
    """Answers in the reply to a POST, `framed` under `content_type`; or, as legacy SSE, on the
    stream of a GET."""

    def __init__(self, content_type: str, framed: Frame, *, legacy: bool = False) -> None:
        self._content_type = content_type
        self._framed = framed
        self._legacy = legacy
        self._stream: asyncio.StreamWriter | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[McpServer]:
        async with await asyncio.start_server(self._answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
            try:
                yield remote(url, McpServerKind.SSE if self._legacy else McpServerKind.HTTP)
            finally:
                if self._stream is not None:
                    self._stream.close()
                    self._stream = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(length[1])) if length else b""
        if not body:
            if self._legacy and self._stream is None:
                self._stream = writer
                writer.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /post\n\n"
                )
            else:
                writer.write(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                writer.close()
            return
        message = json.loads(body)
        if self._legacy or "id" not in message:
            writer.write(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            writer.close()
        else:
            writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {self._content_type}\r\nconnection: close\r\n\r\n".encode())
        out = self._stream if self._legacy else writer
        if "id" in message and out is not None:
            for piece in self._framed(reply(message)):
                out.write(piece)
                await out.drain()
        if out is writer:
            writer.close()


WAYS = pytest.mark.parametrize(
    "hostile",
    [
        HostileServer("application/json", as_it_is),
        HostileServer("text/event-stream", as_event),
        HostileServer("", as_event, legacy=True),
    ],
    ids=["json", "event stream", "legacy sse"],
)


@pytest.mark.requirement("B11")
@WAYS
@pytest.mark.parametrize(("megabytes", "most_memory"), [(6, 40 * MIB), (100, 40 * MIB)])
async def test_a_reply_over_the_limit_says_its_size_and_the_next_call_works(
    hostile: HostileServer, megabytes: int, most_memory: int
) -> None:
    async with hostile.serve() as server, sdk_connections() as connections:
        within = await connections.call_tool(server, IN_RUN, a_call("size", megabytes=4))
        assert len(text_of(within)) == 4_000_000
        before = resident_bytes(os.getpid(), peak=True)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("size", megabytes=megabytes, timeout_s=120))
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        size = re.search(r"reply of (\d+) bytes exceeds the limit of (\d+) bytes", raised.value.detail)
        assert size is not None
        assert megabytes * 1_000_000 < int(size[1]) < megabytes * 1_000_000 + 1_000
        assert int(size[2]) == LIMIT
        assert resident_bytes(os.getpid(), peak=True) - before < most_memory
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo"))) == "fine"
        assert connections.status(server).state is ServerState.CONNECTED


@pytest.mark.requirement("B11")
@WAYS
@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("invalid_utf8", "caf\N{REPLACEMENT CHARACTER} \N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}"),
        ("half_surrogate", "cut \N{REPLACEMENT CHARACTER}"),
        ("control", "[31mred 2J"),
    ],
)
async def test_text_that_is_not_valid_is_mended_and_control_characters_are_taken_out(
    hostile: HostileServer, tool: str, text: str
) -> None:
    async with hostile.serve() as server, sdk_connections() as connections:
        assert text_of(await connections.call_tool(server, IN_RUN, a_call(tool))) == text


@pytest.mark.requirement("B11")
@WAYS
async def test_a_reply_that_is_cut_json_fails_its_call_and_the_next_one_works(hostile: HostileServer) -> None:
    async with hostile.serve() as server, sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("not_json"))
        assert raised.value.kind is McpFailureKind.INVALID_REPLY
        assert connections.logs(server) == f"[dragoman] not_json: {raised.value.detail}\n"
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo"))) == "fine"
