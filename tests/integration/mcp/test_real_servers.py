"""Connections to servers written by others: both generations of the protocol, every transport."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from application.mcp.ports import ContentKind, McpFailure, McpFailureKind, McpProgress, ServerState
from domain.json_value import JsonObject
from domain.mcp.server import Isolation, McpServer, McpServerKind
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from infrastructure.mcp.connections.pool import SdkMcpConnections
from tests.builders import a_run_id
from tests.integration.mcp.parts import (
    EVERYTHING,
    IN_RUN,
    NODE_SERVERS,
    a_call,
    everything,
    free_port,
    remote,
    scope,
    sdk_connections,
    started,
    text_of,
    until,
)

DISCOVERY_S = 60.0


@pytest.mark.requirement("B3", "B4")
@pytest.mark.parametrize(
    ("negotiate", "version"),
    [(negotiate_any, "2026-07-28"), (negotiate_handshake, "2025-11-25")],
    ids=["modern", "handshake"],
)
async def test_the_python_time_server_works_in_both_generations(negotiate: Negotiate, version: str) -> None:
    server = started(sys.executable, "-m", "mcp_server_time")
    async with sdk_connections(negotiate=negotiate) as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=DISCOVERY_S)
        assert (catalog.protocol_version, catalog.server_name) == (version, "mcp-time")
        assert [tool.name for tool in catalog.tools] == ["convert_time", "get_current_time"]
        reply = await connections.call_tool(server, IN_RUN, a_call("get_current_time", timezone="Asia/Tokyo"))
        assert "Asia/Tokyo" in text_of(reply)
        wrong = await connections.call_tool(server, IN_RUN, a_call("get_current_time", timezone="Mars/Olympus"))
        assert wrong.is_error
        assert "Mars/Olympus" in text_of(wrong)


@asynccontextmanager
async def the_everything_server(transport: str) -> AsyncIterator[McpServer]:
    if transport == "stdio":
        yield started("node", EVERYTHING, "stdio")
        return
    path, kind = ("/mcp", McpServerKind.HTTP) if transport == "streamableHttp" else ("/sse", McpServerKind.SSE)
    async with everything(transport) as address:
        yield remote(address + path, kind)


@pytest.fixture(params=["stdio", "streamableHttp", "sse"])
async def everything_server(request: pytest.FixtureRequest) -> AsyncIterator[McpServer]:
    async with the_everything_server(request.param) as server:
        yield server


@pytest.mark.requirement("B3", "B4")
async def test_the_node_everything_server_works_over_every_transport(everything_server: McpServer) -> None:
    async with sdk_connections() as connections:
        catalog = await connections.discover(everything_server, IN_RUN, timeout_s=DISCOVERY_S)
        assert catalog.protocol_version == "2025-11-25"
        assert {"echo", "get-sum", "trigger-long-running-operation"} <= {tool.name for tool in catalog.tools}
        assert catalog.skipped == ()
        assert catalog.instructions is not None

        reply = await connections.call_tool(everything_server, IN_RUN, a_call("echo", message="hello"))
        assert text_of(reply) == "Echo: hello"
        structured = await connections.call_tool(
            everything_server, IN_RUN, a_call("get-structured-content", location="Chicago")
        )
        assert isinstance(structured.structured, dict)
        assert "temperature" in structured.structured
        image = await connections.call_tool(everything_server, IN_RUN, a_call("get-tiny-image"))
        [block] = [block for block in image.content if block.kind is ContentKind.IMAGE]
        assert block.image is not None
        assert (block.image.media_type, block.text.partition(",")[0]) == ("image/png", "image/png")


@pytest.mark.requirement("B4")
async def test_progress_of_a_long_operation_arrives_over_every_transport(everything_server: McpServer) -> None:
    seen: list[McpProgress] = []

    async def on_progress(progress: McpProgress) -> None:
        seen.append(progress)

    call = a_call("trigger-long-running-operation", duration=0.2, steps=4)
    async with sdk_connections() as connections:
        await connections.call_tool(everything_server, IN_RUN, call, on_progress)
    assert [(one.progress, one.total) for one in seen] == [(number, 4.0) for number in (1.0, 2.0, 3.0, 4.0)]


async def test_many_calls_at_once_are_each_answered_with_their_own_result(everything_server: McpServer) -> None:
    async with sdk_connections() as connections:
        calls = [a_call("echo", message=f"message {number}") for number in range(40)]
        replies = await asyncio.gather(*(connections.call_tool(everything_server, IN_RUN, call) for call in calls))
    assert [text_of(reply) for reply in replies] == [f"Echo: message {number}" for number in range(40)]


@pytest.mark.requirement("A12")
async def test_a_call_given_up_ends_at_once_and_leaves_the_connection_usable(everything_server: McpServer) -> None:
    begun = asyncio.Event()

    async def on_progress(progress: McpProgress) -> None:
        begun.set()

    async with sdk_connections() as connections:
        call = a_call("trigger-long-running-operation", duration=300, steps=3_000)
        waiting = asyncio.create_task(connections.call_tool(everything_server, IN_RUN, call, on_progress))
        await asyncio.wait({waiting, asyncio.ensure_future(begun.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert not waiting.done(), await waiting
        waiting.cancel()
        async with asyncio.timeout(60):
            with pytest.raises(asyncio.CancelledError):
                await waiting
        reply = await connections.call_tool(everything_server, IN_RUN, a_call("echo", message="still here"))
        assert text_of(reply) == "Echo: still here"


@pytest.mark.requirement("B15")
async def test_two_runs_each_have_their_own_memory_server(tmp_path_factory: pytest.TempPathFactory) -> None:
    program = str(NODE_SERVERS / "server-memory" / "dist" / "index.js")
    store = tmp_path_factory.mktemp("memory") / "memory.jsonl"
    server = started("node", program, env={"MEMORY_FILE_PATH": str(store)}, isolation=Isolation.RUN)
    async with sdk_connections() as connections:
        entity: JsonObject = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
        for number in (1, 2):
            in_run = scope(run_id=a_run_id(number))
            await connections.call_tool(server, in_run, a_call("create_entities", entities=[entity]))
            graph = await connections.call_tool(server, in_run, a_call("read_graph"))
            assert isinstance(graph.structured, dict)
        assert connections.connection_count == 2
        await connections.release(scope(run_id=a_run_id(1)))
        await until(lambda: connections.connection_count == 1)


@pytest.mark.requirement("B3", "B7")
async def test_a_restarted_server_is_connected_anew_without_the_caller_noticing() -> None:
    port = free_port()

    async def say(connections: SdkMcpConnections, server: McpServer) -> str:
        return text_of(await connections.call_tool(server, IN_RUN, a_call("echo", message="hello")))

    async with sdk_connections() as connections:
        async with everything("streamableHttp", port) as address:
            server = remote(f"{address}/mcp")
            assert await say(connections, server) == "Echo: hello"
        with pytest.raises(McpFailure) as raised:
            await say(connections, server)
        assert raised.value.kind in (McpFailureKind.NOT_CONNECTED, McpFailureKind.CONNECTION_LOST)
        async with everything("streamableHttp", port):
            assert await say(connections, server) == "Echo: hello"
        async with everything("streamableHttp", port):  # which knows nothing of the session
            assert await say(connections, server) == "Echo: hello"
            assert connections.status(server).state is ServerState.CONNECTED
