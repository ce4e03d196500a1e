"""What a remote A2A agent may answer, and where its card may lead: over real HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from application.mcp.ports import McpFailure, McpFailureKind, McpReply
from application.tools.call_context import KEEPS_STATE_META
from domain.mcp.server import McpServerKind
from infrastructure.http.egress import EgressPolicy
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.faults import TransportFailedError
from infrastructure.mcp.transports.a2a_agent import CARD_PATH, A2aAgent, A2aRefused
from infrastructure.mcp.transports.a2a_results import TOOL
from infrastructure.mcp.transports.remote import Endpoint, RemoteClient
from tests.integration.mcp.parts import IN_RUN, a_call, remote, sdk_connections, text_of

pytestmark = pytest.mark.requirement("X5")

HERE = "here"


@asynccontextmanager
async def agent(card: Any, answer: Any = None, status: int = 200) -> AsyncIterator[tuple[A2aAgent, list[str]]]:
    """An agent with this card, whose operations all have this answer; and the paths that it was
    asked for."""
    asked: list[str] = []

    async def respond(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == CARD_PATH:
            return web.Response(text=json.dumps(card).replace(HERE, str(server.make_url("/")).rstrip("/")))
        return web.Response(text=answer if isinstance(answer, str) else json.dumps(answer), status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    server = TestServer(app)
    client = RemoteClient(egress=EgressPolicy(["127.0.0.0/8"]))
    async with server:
        try:
            url = str(server.make_url("/"))
            yield A2aAgent(Endpoint(client, url, {"authorization": "Bearer secret"}, 10_000), url), asked
        finally:
            await client.close()


def card(url: str = HERE, binding: str = "JSONRPC", version: str = "1.0") -> dict[str, object]:
    return {"supportedInterfaces": [{"url": url, "protocolBinding": binding, "protocolVersion": version}]}


@pytest.mark.requirement("C6")
async def test_a_card_leads_no_credentials_to_another_origin() -> None:
    for elsewhere in ("http://127.0.0.2:1/", "https://evil.example/", "http://169.254.169.254/latest"):
        async with agent(card(elsewhere)) as (remote, asked):
            with pytest.raises(TransportFailedError):
                await remote.call("GetTask", {"id": "t"})
            assert asked == [CARD_PATH]


async def test_the_first_interface_of_a_known_version_and_binding_is_used() -> None:
    older = {"url": HERE, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
    other = {"url": HERE, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    known = {"url": f"{HERE}/a", "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    async with agent({"supportedInterfaces": [older, other, known]}, {"id": "t"}) as (remote, asked):
        assert await remote.call("GetTask", {"id": "t/1"}) == {"id": "t"}
        assert asked[-1] == "/a/tasks/t/1"
    async with agent({"supportedInterfaces": [older, other, {}, 5]}) as (remote, _):
        with pytest.raises(A2aRefused):
            await remote.card()
    async with agent(card("http://[")) as (remote, _):
        with pytest.raises(A2aRefused):
            await remote.call("GetTask", {"id": "t"})


@pytest.mark.parametrize("answer", ["", "{", "[]", '"text"', "[" * 9_000])
async def test_what_is_no_answer_fails_the_call(answer: str) -> None:
    async with agent(card(), answer) as (remote, _):
        with pytest.raises(TransportFailedError):
            await remote.call("GetTask", {"id": "t"})


async def test_an_error_of_the_agent_is_told_on_both_bindings() -> None:
    error = {"error": {"code": -32001, "message": "No such task."}}
    for binding, status in (("JSONRPC", 200), ("HTTP+JSON", 404)):
        async with agent(card(binding=binding), error, status) as (remote, _):
            with pytest.raises(A2aRefused, match="No such task"):
                await remote.call("GetTask", {"id": "t"})
    async with agent(card(), {"error": {}}, 401) as (remote, _):
        with pytest.raises(TransportFailedError) as failed:
            await remote.call("GetTask", {"id": "t"})
        assert failed.value.fault.needs_auth


@asynccontextmanager
async def working(*answers: int, streaming: bool = False) -> AsyncIterator[tuple[str, list[str]]]:
    """An agent that answers reads of its task by these statuses, and works until then. It has no
    streams, whatever its card says. Its address, and the methods that it was asked for."""
    asked: list[str] = []
    left = list(answers)
    told = {**card(), "capabilities": {"streaming": streaming}}

    async def respond(request: web.Request) -> web.Response:
        if request.path == CARD_PATH:
            return web.Response(text=json.dumps(told).replace(HERE, str(server.make_url("/")).rstrip("/")))
        call = await request.json()
        asked.append(call["method"])
        status = left.pop(0) if call["method"] == "GetTask" and left else None
        if call["method"] == "SubscribeToTask" or (status or 200) != 200:
            refusal = {"error": {"message": "No."}} if status == 429 else {}
            return web.Response(status=status or 405, text=json.dumps(refusal))
        state = "COMPLETED" if call["method"] == "GetTask" and status is None else "WORKING"
        task = {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}
        result = task if call["method"] == "GetTask" else {"task": task}
        return web.Response(text=json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    server = TestServer(app)
    async with server:
        yield str(server.make_url("/")), asked


async def called(connections: SdkMcpConnections, url: str, *, is_continued: bool) -> McpReply:
    """The reply to a message, in one call or in one that continues where another call was
    stored."""
    server, call = remote(url, McpServerKind.A2A), a_call(TOOL, message="hello")
    if not is_continued:
        return await connections.call_tool(server, IN_RUN, call)
    stored = replace(call, meta={KEEPS_STATE_META: "yes"})
    begun = await connections.call_tool(server, IN_RUN, stored)
    assert begun.input_required is not None
    return await connections.call_tool(
        server, IN_RUN, replace(stored, request_state=begun.input_required.request_state)
    )


@pytest.mark.parametrize("is_continued", [False, True], ids=["one call", "continued"])
@pytest.mark.parametrize("status", [404, 429, 503])
async def test_a_task_is_read_again_after_a_passing_fault_and_its_message_is_sent_once(
    status: int, is_continued: bool
) -> None:
    async with working(status) as (url, asked), sdk_connections() as connections:
        assert "task_id: t" in text_of(await called(connections, url, is_continued=is_continued))
    assert asked == ["SendMessage", "GetTask", "GetTask"]


@pytest.mark.parametrize("is_continued", [False, True], ids=["one call", "continued"])
async def test_a_task_that_cannot_be_read_is_named_and_its_message_is_not_sent_again(is_continued: bool) -> None:
    async with working(403) as (url, asked), sdk_connections() as connections:
        with pytest.raises(McpFailure, match="the task t,") as raised:
            await called(connections, url, is_continued=is_continued)
        assert raised.value.kind is McpFailureKind.CONNECTION_LOST
    assert asked == ["SendMessage", "GetTask"]


async def test_an_agent_that_refuses_the_stream_of_its_card_is_asked_for_it_once() -> None:
    async with working(200, 200, streaming=True) as (url, asked), sdk_connections() as connections:
        assert "task_id: t" in text_of(await called(connections, url, is_continued=False))
    assert asked == ["SendMessage", "SubscribeToTask", "GetTask", "GetTask", "GetTask"]


@pytest.mark.parametrize("ends", ["COMPLETED", "INPUT_REQUIRED", ""], ids=["ended", "waiting", "broken"])
async def test_the_stream_of_a_task_says_when_to_read_it(ends: str) -> None:
    asked: list[str] = []

    async def respond(request: web.Request) -> web.StreamResponse:
        if request.path == CARD_PATH:
            streaming = {**card(), "capabilities": {"streaming": True}}
            return web.Response(text=json.dumps(streaming).replace(HERE, str(server.make_url("/")).rstrip("/")))
        call = await request.json()
        asked.append(call["method"])
        state = "WORKING" if call["method"] == "SendMessage" else ends or "COMPLETED"
        task = {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}"}}
        if call["method"] != "SubscribeToTask":
            result = {"task": task} if call["method"] == "SendMessage" else task
            return web.Response(text=json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}))
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        updates = [{"task": {**task, "status": {"state": "TASK_STATE_WORKING"}}}]
        if ends:
            updates.append({"statusUpdate": {"taskId": "t", "contextId": "c", "status": task["status"]}})
        for update in updates:
            frame = json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": update})
            await stream.write(f": beat\n\ndata: {frame}\n\n".encode())
        if ends:
            await asyncio.Event().wait()  # a stream that stays open
        return stream

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", respond)
    server = TestServer(app)
    async with server, sdk_connections() as connections:
        url = str(server.make_url("/"))
        reply = await connections.call_tool(remote(url, McpServerKind.A2A), IN_RUN, a_call(TOOL, message="hello"))
        assert "task_id: t" in text_of(reply)
    assert asked == ["SendMessage", "SubscribeToTask", "GetTask"]
