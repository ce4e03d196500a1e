"""Addresses where no MCP server answers as it should: each is a clear failure in bounded time."""

import asyncio
import gzip
import itertools
import json
import os
import re
from collections.abc import Awaitable, Callable, Iterator

import pytest

from application.mcp.ports import McpFailure, McpFailureKind, ServerState
from domain.mcp.server import McpServerKind
from tests.e2e.processes import resident_bytes
from tests.integration.mcp.parts import (
    IN_RUN,
    PATIENCE_S,
    Answer,
    Respond,
    a_call,
    answering,
    free_port,
    http,
    remote,
    sdk_connections,
    text_of,
    time_passes,
)

BOUND_S = 45.0
"""Bound on a call that fails at a deadline, on a busy machine too. Less than the deadlines that the
call does not reach."""
KINDS = pytest.mark.parametrize("kind", [McpServerKind.HTTP, McpServerKind.SSE])


def always(answer: bytes | None) -> Respond:
    async def respond(request: bytes) -> bytes | None:
        return answer

    return respond


def message_in(request: bytes) -> dict[str, object]:
    message: dict[str, object] = json.loads(request.partition(b"\r\n\r\n")[2] or b"{}")
    return message


def modern(call: Callable[[object], Awaitable[Answer]]) -> Respond:
    """A modern server whose answer to a call with an id is what `call` says."""

    async def respond(request: bytes) -> Answer:
        message = message_in(request)
        if message["method"] != "server/discover":
            return await call(message["id"])
        result = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
        return http("200 OK", "application/json", json.dumps(reply(message["id"], result)).encode())

    return respond


def reply(request_id: object, result: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


async def failure_at(url: str, kind: McpServerKind = McpServerKind.HTTP, timeout_s: float = PATIENCE_S) -> McpFailure:
    async with sdk_connections() as connections:
        async with asyncio.timeout(BOUND_S):
            with pytest.raises(McpFailure) as raised:
                await connections.call_tool(remote(url, kind), IN_RUN, a_call("echo", timeout_s=timeout_s))
        return raised.value


@KINDS
async def test_an_address_where_nobody_listens_is_not_connected(kind: McpServerKind) -> None:
    server = remote(f"http://127.0.0.1:{free_port()}/mcp", kind)
    async with sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo"))
        failure = raised.value
        assert (failure.kind, failure.detail) == (
            McpFailureKind.NOT_CONNECTED,
            "The server cannot be reached: nothing accepts connections at this port.",
        )
        assert connections.status(server).state is ServerState.ERROR


@KINDS
@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (http("500 Oh No", "text/plain", b"secret stack trace"), "The server answered with HTTP status 500."),
        (http("404 Not Found", "text/html", b"<html>"), "The server refused the request (HTTP status 404)."),
        (http("200 OK", "text/html", b"<html>"), "The server's reply is not MCP (content type text/html)."),
        (
            http("307 Moved", "text/plain", b"", "location: http://192.0.2.1/elsewhere"),
            "The server redirects to another origin, which is not followed.",
        ),
        (b"220 smtp.example.com ESMTP\r\n", "The connection to the server broke before it answered."),
        (b"", "The connection to the server broke before it answered."),
    ],
    ids=["500", "404", "html", "elsewhere", "not http", "nothing"],
)
async def test_an_endpoint_that_is_no_mcp_server_is_not_connected(
    kind: McpServerKind, answer: bytes, detail: str
) -> None:
    async with answering(always(answer)) as address:
        failure = await failure_at(address, kind)
    assert (failure.kind, failure.detail) == (McpFailureKind.NOT_CONNECTED, detail)


async def test_json_that_is_not_json_rpc_is_not_connected() -> None:
    async with answering(always(http("200 OK", "application/json", b'{"status": "fine"}'))) as address:
        failure = await failure_at(address)
    assert failure.kind is McpFailureKind.NOT_CONNECTED
    assert failure.detail == "The server's reply is not a valid JSON-RPC message."


@KINDS
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_server_that_refuses_access_needs_credentials(kind: McpServerKind, status: str) -> None:
    async with answering(always(http(status, "application/json", b"{}"))) as address, sdk_connections() as connections:
        server = remote(address, kind)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo"))
        assert raised.value.kind is McpFailureKind.NEEDS_AUTH
        assert connections.status(server).state is ServerState.NEEDS_AUTH


@KINDS
async def test_an_endpoint_that_never_answers_fails_the_call_at_its_deadline(kind: McpServerKind) -> None:
    async with answering(always(None)) as address:
        failure = await failure_at(address, kind, timeout_s=0.5)
    assert (failure.kind, failure.detail) == (McpFailureKind.NOT_CONNECTED, "The server did not answer in time.")


@pytest.mark.requirement("A5", "B16")
async def test_a_server_that_goes_silent_in_a_call_times_out() -> None:
    called = asyncio.Event()

    async def silence(request_id: object) -> None:
        called.set()

    async with answering(modern(silence)) as address:
        failing = asyncio.create_task(failure_at(address, timeout_s=30))
        await called.wait()
        time_passes(30)
        failure = await failing
    assert failure.kind is McpFailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"", McpFailureKind.CONNECTION_LOST),
        (http("502 Bad Gateway", "text/html", b"<html>"), McpFailureKind.CONNECTION_LOST),
        (http("429 Too Many", "text/plain", b""), McpFailureKind.NOT_CONNECTED),
        (http("200 OK", "text/html", b"<html>"), McpFailureKind.INVALID_REPLY),
        (http("200 OK", "application/json", b"{"), McpFailureKind.INVALID_REPLY),
        (
            http("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": 1, "result": {}}'),
            McpFailureKind.INVALID_REPLY,
        ),
        (http("202 Accepted", "text/plain", b""), McpFailureKind.CONNECTION_LOST),
        (http("200 OK", "text/event-stream", b": nothing\n\n"), McpFailureKind.CONNECTION_LOST),
        (
            http("200 OK", "application/json", b"no brotli", "content-encoding: br"),
            McpFailureKind.CONNECTION_LOST,
        ),
        (
            http("200 OK", "application/json", gzip.compress(b"{}"), "content-encoding: gzip, gzip"),
            McpFailureKind.INVALID_REPLY,
        ),
        (
            http("200 OK", "application/json", b"no gzip", "content-encoding: gzip"),
            McpFailureKind.CONNECTION_LOST,
        ),
    ],
    ids=[
        "cut",
        "502",
        "429",
        "html",
        "no json",
        "no result",
        "202",
        "empty stream",
        "brotli",
        "gzipped twice",
        "torn gzip",
    ],
)
async def test_a_call_answered_with_something_else_fails_by_its_kind(answer: bytes, kind: McpFailureKind) -> None:
    async def call(request_id: object) -> bytes:
        return answer

    async with answering(modern(call)) as address:
        failure = await failure_at(address)
    assert failure.kind is kind


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("foreign", ["call-77", 5, ""])
async def test_the_answer_to_another_request_is_not_taken_for_the_one_that_was_asked(
    content_type: str, foreign: object
) -> None:
    async def call(request_id: object) -> bytes:
        body = json.dumps(reply(foreign, {"content": [{"type": "text", "text": "of another"}]})).encode()
        return http("200 OK", content_type, b"data: " + body + b"\n\n" if "event" in content_type else body)

    async with answering(modern(call)) as address:
        failure = await failure_at(address)
    expected = {
        "application/json": (McpFailureKind.INVALID_REPLY, "belongs to another request"),
        "text/event-stream": (McpFailureKind.CONNECTION_LOST, "ended its reply before it had answered"),
    }[content_type]
    assert failure.kind is expected[0]
    assert expected[1] in failure.detail


@pytest.mark.requirement("B11", "B16")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("status", ["200 OK", "500 Oh No"])
async def test_a_body_without_end_is_read_only_so_far(content_type: str, status: str) -> None:
    def endless() -> Iterator[bytes]:
        yield f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\ndata: ".encode()
        yield from itertools.repeat(b"x" * 100_000)

    async def call(request_id: object) -> Answer:
        return endless()

    async with answering(modern(call)) as address, sdk_connections() as connections:
        server = remote(address, max_response_bytes=64 * 1024)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo"))
    if status == "200 OK" or content_type == "application/json":
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        assert "reply of more than 2097152 bytes exceeds the limit of 65536 bytes" in raised.value.detail
    else:
        assert raised.value.detail == "The server answered with HTTP status 500."


@pytest.mark.requirement("B11", "B16")
async def test_a_reply_of_unannounced_length_is_counted_and_refused() -> None:
    async def call(request_id: object) -> bytes:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n"
        return head + b"x" * (6 * 1024 * 1024)

    async with answering(modern(call)) as address:
        failure = await failure_at(address)
    assert failure.kind is McpFailureKind.TOO_LARGE
    assert "reply of 6291456 bytes exceeds the limit of 4194304 bytes" in failure.detail


def a_hundred_megabytes(request_id: object, content_type: str) -> Iterator[bytes]:
    """A reply with one text of that size, written as it is read."""
    result = {"content": [{"type": "text", "text": "MARK"}], "resultType": "complete"}
    begin, _, end = json.dumps(reply(request_id, result)).encode().partition(b"MARK")
    is_stream = content_type == "text/event-stream"
    yield f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n".encode()
    yield (b"event: message\ndata: " if is_stream else b"") + begin
    yield from itertools.repeat(b"x" * 1_000_000, 100)
    yield end + (b"\n\n" if is_stream else b"")


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("content_type", ["application/json", "text/event-stream"])
async def test_a_reply_of_a_hundred_megabytes_fails_its_call_without_being_held_in_memory(content_type: str) -> None:
    calls = 0

    async def call(request_id: object) -> Answer:
        nonlocal calls
        calls += 1
        if calls == 2:
            return a_hundred_megabytes(request_id, content_type)
        return http("200 OK", "application/json", json.dumps(reply(request_id, {"content": []})).encode())

    async with answering(modern(call)) as address, sdk_connections() as connections:
        server = remote(address)
        await connections.call_tool(server, IN_RUN, a_call("echo"))
        before = resident_bytes(os.getpid(), peak=True)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo", timeout_s=120))
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        assert re.search(r"reply of 100000\d\d\d bytes exceeds the limit of 4194304 bytes", raised.value.detail)
        assert resident_bytes(os.getpid(), peak=True) - before < 30_000_000
        assert (await connections.call_tool(server, IN_RUN, a_call("echo"))).content == ()
        assert connections.status(server).state is ServerState.CONNECTED


async def test_a_redirect_within_the_origin_is_followed_with_its_method() -> None:
    async def call(request_id: object) -> bytes:
        result = {"content": [{"type": "text", "text": "arrived"}], "resultType": "complete"}
        return http("200 OK", "application/json", json.dumps(reply(request_id, result)).encode())

    serve = modern(call)

    async def respond(request: bytes) -> Answer:
        if request.startswith(b"POST /mcp HTTP"):
            return http("307 Moved", "text/plain", b"", "location: /mcp/")
        assert request.startswith(b"POST /mcp/ HTTP")
        return await serve(request)

    async with answering(respond) as address, sdk_connections() as connections:
        assert text_of(await connections.call_tool(remote(f"{address}/mcp"), IN_RUN, a_call("echo"))) == "arrived"


async def test_a_server_that_wants_input_in_the_middle_of_a_call_is_not_waited_for() -> None:
    async def call(request_id: object) -> bytes:
        result = {"resultType": "input_required", "requestState": "x"}
        return http("200 OK", "application/json", json.dumps(reply(request_id, result)).encode())

    async with answering(modern(call)) as address, sdk_connections() as connections:
        answer = await connections.call_tool(remote(address), IN_RUN, a_call("echo"))
    assert answer.input_required is not None
    assert (answer.input_required.questions, answer.input_required.request_state) == ((), "x")
