"""Servers that answer only `tools/call`: their tools are declared, and nothing but calls is sent to
them."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from application.mcp.contents import ContentMethod, ContentRequest
from application.mcp.ports import McpCall, McpFailure, McpFailureKind, ServerState
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.declared_tool import DeclaredTool
from domain.mcp.server import Isolation, McpServer
from tests.integration.mcp.parts import (
    IN_RUN,
    ISOLATED_PYTHON,
    PATIENCE_S,
    SERVERS,
    Answer,
    a_call,
    answering,
    http,
    remote,
    sdk_connections,
    started,
    text_of,
    time_passes,
)

LOOKUP = DeclaredTool(
    name="lookup",
    description="Looks up an address.",
    parameters={"type": "object", "properties": {"ip": {"type": "string"}}, "required": ["ip"]},
)


class CallsOnly:
    """An HTTP endpoint that knows one method. `received` has all its requests."""

    def __init__(self) -> None:
        self.received: list[tuple[bytes, dict[str, Any]]] = []
        self.answer: bytes | None = None
        self.is_silent = False
        self.called = asyncio.Event()

    async def respond(self, request: bytes) -> Answer:
        head, _, body = request.partition(b"\r\n\r\n")
        message = json.loads(body or b"{}")
        self.received.append((head.lower(), message))
        self.called.set()
        if self.is_silent:
            return None
        return self.answer if self.answer is not None else http("200 OK", "application/json", _answered(message))

    @property
    def methods(self) -> list[str]:
        return [message.get("method", "") for _, message in self.received]


def _answered(message: Mapping[str, Any]) -> bytes:
    if message.get("method") != "tools/call":
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
    else:
        answer = {"result": {"content": [{"type": "text", "text": f"seen {message['params']['arguments']}"}]}}
    return json.dumps({"jsonrpc": "2.0", "id": message.get("id"), **answer}).encode()


def declared(url: str, **settings: Any) -> McpServer:
    return remote(url, declared_tools=(LOOKUP,), **settings)


def an_event(message: object) -> bytes:
    return b"data: " + json.dumps(message).encode() + b"\n\n"


@pytest.mark.requirement("B1", "B4")
@pytest.mark.parametrize("isolation", [Isolation.SHARED, Isolation.RUN])
async def test_an_endpoint_that_answers_calls_only_is_sent_calls_only(isolation: Isolation) -> None:
    endpoint = CallsOnly()
    async with answering(endpoint.respond) as url, sdk_connections() as connections:
        server = declared(url, isolation=isolation)
        catalog = await connections.discover(server, IN_RUN, timeout_s=60)
        assert endpoint.received == []

        for ip in ("192.0.2.1", "192.0.2.2"):
            reply = await connections.call_tool(server, IN_RUN, a_call("lookup", ip=ip))
            assert text_of(reply) == f"seen {{'ip': '{ip}'}}"
        assert connections.status(server).state is ServerState.CONNECTED

    assert [(tool.name, tool.description, tool.input_schema) for tool in catalog.tools] == [
        (LOOKUP.name, LOOKUP.description, LOOKUP.parameters)
    ]
    assert (catalog.protocol_version, catalog.instructions, catalog.skipped) == ("", None, ())
    assert endpoint.methods == ["tools/call"] * 2
    head, message = endpoint.received[0]
    assert message["params"] == {"name": "lookup", "arguments": {"ip": "192.0.2.1"}}
    assert b"mcp-protocol-version" not in head
    assert b"mcp-session-id" not in head


@pytest.mark.requirement("B1", "B4")
async def test_a_program_that_answers_calls_only_is_sent_calls_only() -> None:
    program = str(SERVERS / "calls_only_server.py")
    server = started(*ISOLATED_PYTHON, program, declared_tools=(LOOKUP,))
    async with sdk_connections() as connections:
        assert [tool.name for tool in (await connections.discover(server, IN_RUN, timeout_s=60)).tools] == ["lookup"]
        assert connections.connection_count == 0
        reply = await connections.call_tool(server, IN_RUN, a_call("lookup", ip="192.0.2.1"))
    assert text_of(reply) == "call 1 of ['tools/call']"


@pytest.mark.requirement("B1", "C7")
async def test_a_call_is_pinned_to_the_declared_definition() -> None:
    endpoint = CallsOnly()
    async with answering(endpoint.respond) as url, sdk_connections() as connections:
        server = declared(url)
        [definition] = (await connections.discover(server, IN_RUN, timeout_s=60)).tools
        other = remote(
            url, declared_tools=(DeclaredTool(name="lookup", description="Other.", parameters={"type": "object"}),)
        )
        [changed] = (await connections.discover(other, IN_RUN, timeout_s=60)).tools

        await connections.call_tool(server, IN_RUN, _pinned(definition))
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, _pinned(changed))
        assert raised.value.kind is McpFailureKind.DEFINITION_CHANGED
    assert endpoint.methods == ["tools/call"]


@pytest.mark.requirement("B1")
async def test_contents_of_such_a_server_are_not_requested() -> None:
    endpoint = CallsOnly()
    request = ContentRequest(method=ContentMethod.RESOURCES, params={}, timeout_s=60)
    async with answering(endpoint.respond) as url, sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.ask(declared(url), IN_RUN, request)
    assert (raised.value.kind, raised.value.rpc_code) == (McpFailureKind.SERVER_ERROR, -32601)
    assert endpoint.received == []


@pytest.mark.requirement("A12", "B1")
async def test_a_call_without_an_answer_ends_by_its_timeout_and_nothing_more_is_sent() -> None:
    endpoint = CallsOnly()
    endpoint.is_silent = True
    async with answering(endpoint.respond) as url, sdk_connections() as connections:
        waiting = asyncio.create_task(connections.call_tool(declared(url), IN_RUN, a_call("lookup")))
        await endpoint.called.wait()
        time_passes(PATIENCE_S)
        with pytest.raises(McpFailure) as raised:
            await waiting
        assert raised.value.kind is McpFailureKind.TIMEOUT
    assert endpoint.methods == ["tools/call"]


@pytest.mark.requirement("B1", "B8")
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (http("200 OK", "application/json", b'{"jsonrpc": "2.0", "id": "other", "result": {}}'), "invalid_reply"),
        (http("200 OK", "application/json", b'{"status": "fine"}'), "invalid_reply"),
        (http("200 OK", "text/html", b"<html>"), "invalid_reply"),
        (http("401 No", "text/plain", b""), "needs_auth"),
        (http("200 OK", "application/json", b"[" * 5_000), "invalid_reply"),
        (http("200 OK", "application/json", b'{"x": "' + b"x" * 20_000 + b'"}'), "too_large"),
    ],
    ids=["other id", "no json-rpc", "html", "401", "nested", "large"],
)
async def test_a_hostile_answer_fails_its_call_and_the_next_call_works(answer: bytes, kind: str) -> None:
    endpoint = CallsOnly()
    endpoint.answer = answer
    async with answering(endpoint.respond) as url, sdk_connections() as connections:
        server = declared(url, max_response_bytes=10_000)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("lookup"))
        assert raised.value.kind.value == kind
        endpoint.answer = None
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("lookup"))) == "seen {}"
    assert set(endpoint.methods) == {"tools/call"}


@pytest.mark.requirement("B1", "B8")
async def test_what_a_hostile_endpoint_says_of_its_tools_changes_nothing_and_its_requests_are_refused() -> None:
    """In the stream of its answer it reports changed tools and requests a completion of a model."""
    endpoint = CallsOnly()

    async def respond(request: bytes) -> Answer:
        plain = await endpoint.respond(request)
        message = endpoint.received[-1][1]
        if message.get("method") != "tools/call" or endpoint.methods.count("tools/call") > 1:
            return plain
        result = {"content": [{"type": "text", "text": "done"}], "tools": [{"name": "drop", "inputSchema": {}}]}
        stream = (
            an_event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            + an_event({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {"messages": []}})
            + an_event({"jsonrpc": "2.0", "id": message["id"], "result": result})
        )
        return http("200 OK", "text/event-stream", stream)

    async with answering(respond) as url, sdk_connections() as connections:
        server = declared(url)
        [definition] = (await connections.discover(server, IN_RUN, timeout_s=60)).tools
        assert text_of(await connections.call_tool(server, IN_RUN, _pinned(definition))) == "done"
        await connections.call_tool(server, IN_RUN, _pinned(definition))
        again = await connections.discover(server, IN_RUN, timeout_s=60)
        assert [tool.name for tool in again.tools] == ["lookup"]
        async with asyncio.timeout(60):
            while len(endpoint.received) < 3:  # noqa: ASYNC110 (the refusal is sent beside the calls)
                await asyncio.sleep(0.01)
    [refusal] = [message for _, message in endpoint.received if "method" not in message]
    assert "result" not in refusal
    assert refusal["error"]["code"]
    assert [method for method in endpoint.methods if method] == ["tools/call"] * 2


def _pinned(definition: McpToolDefinition) -> McpCall:
    return replace(a_call("lookup", ip="192.0.2.1"), definition=definition)
