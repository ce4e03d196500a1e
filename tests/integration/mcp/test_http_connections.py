"""Streamable HTTP with a real server in both generations: calls, cancellation, listings, news, and
what is not shared."""

import asyncio
import logging

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import McpServerId
from domain.mcp.server import Isolation, McpServer, McpServerKind
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from tests.builders import OTHER_ORG, a_run_id, numbered
from tests.integration.mcp.parts import (
    IN_RUN,
    PATIENCE_S,
    a_call,
    remote,
    scope,
    sdk_connections,
    text_of,
    time_passes,
)
from tests.integration.mcp.watched_server import WatchedServer

GENERATIONS = pytest.mark.parametrize(
    ("negotiate", "version"),
    [(negotiate_any, "2026-07-28"), (negotiate_handshake, "2025-11-25")],
    ids=["modern", "handshake"],
)
BODIES = pytest.mark.parametrize("json_response", [True, False], ids=["json", "events"])


@pytest.mark.requirement("B3", "B4")
@GENERATIONS
@BODIES
async def test_calls_are_answered_and_tools_are_never_listed_for_them(
    negotiate: Negotiate, version: str, json_response: bool
) -> None:
    watched = WatchedServer()
    async with watched.serve(json_response=json_response) as url, sdk_connections(negotiate=negotiate) as connections:
        server = remote(url)
        for _ in range(3):
            reply = await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
            assert text_of(reply) == "{'text': 'hello'}"
        assert watched.requests == ["tools/call"] * 3
        assert connections.status(server).protocol_version == version


@pytest.mark.requirement("B4", "B5")
@GENERATIONS
async def test_every_page_of_tools_is_listed_in_one_order(negotiate: Negotiate, version: str) -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections(negotiate=negotiate) as connections:
        catalog = await connections.discover(remote(url), IN_RUN, timeout_s=60)
    assert watched.requests == ["tools/list"] * 3
    assert [tool.name for tool in catalog.tools] == ["ask", "big", "echo", "hang", "routed"]
    assert (catalog.protocol_version, catalog.server_name) == (version, "watched")
    assert catalog.instructions == "Handle with care."


@pytest.mark.requirement("A12", "B4")
@pytest.mark.parametrize(
    ("negotiate", "version", "json_response"),
    # The SDK's modern server does not watch for the client's leaving while it prepares a JSON body.
    [
        (negotiate_any, "2026-07-28", False),
        (negotiate_handshake, "2025-11-25", False),
        (negotiate_handshake, "2025-11-25", True),
    ],
    ids=["modern", "handshake", "handshake json"],
)
async def test_cancelling_a_call_cancels_the_handler_at_the_server(
    negotiate: Negotiate, version: str, json_response: bool
) -> None:
    watched = WatchedServer()
    async with watched.serve(json_response=json_response) as url, sdk_connections(negotiate=negotiate) as connections:
        server = remote(url)
        waiting = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
        await watched.hanging.wait()
        assert connections.status(server).protocol_version == version
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(60):
            await watched.cancelled.wait()
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo", text="on"))) == "{'text': 'on'}"


@pytest.mark.requirement("A12", "B4")
async def test_cancelling_a_call_cancels_the_handler_of_a_legacy_server() -> None:
    watched = WatchedServer()
    async with watched.serve_sse() as url, sdk_connections() as connections:
        server = remote(url, McpServerKind.SSE)
        waiting = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
        await watched.hanging.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(60):
            await watched.cancelled.wait()
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo", text="on"))) == "{'text': 'on'}"
    assert watched.requests == ["GET /sse", "tools/call", "tools/call"], "the connection stays"


@pytest.mark.requirement("A12", "B4")
@GENERATIONS
async def test_a_call_that_times_out_is_cancelled_at_the_server(negotiate: Negotiate, version: str) -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections(negotiate=negotiate) as connections:
        server = remote(url)
        waiting = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
        await watched.hanging.wait()
        time_passes(PATIENCE_S)
        with pytest.raises(McpFailure) as raised:
            await waiting
        assert raised.value.kind is McpFailureKind.TIMEOUT
        assert connections.status(server).protocol_version == version
        async with asyncio.timeout(60):
            await watched.cancelled.wait()


async def test_a_run_that_is_released_takes_its_calls_along() -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections() as connections:
        server = remote(url, isolation=Isolation.RUN)
        waiting = asyncio.create_task(connections.call_tool(server, IN_RUN, a_call("hang")))
        await watched.hanging.wait()
        await connections.release(IN_RUN)
        with pytest.raises(McpFailure) as raised:
            await waiting
        assert raised.value.kind is McpFailureKind.CONNECTION_LOST
        async with asyncio.timeout(60):
            await watched.cancelled.wait()


@pytest.mark.requirement("B15")
async def test_headers_go_to_their_own_server_only_though_the_client_is_shared() -> None:
    async def headers_at(server: McpServer, watched: WatchedServer) -> dict[str, str]:
        await connections.call_tool(server, scope(server.organization_id), a_call("echo"))
        return {name: value for name, value in watched.headers.items() if name in ("authorization", "x-team", "cookie")}

    one, two = WatchedServer(), WatchedServer()
    async with one.serve() as url, two.serve() as other_url, sdk_connections() as connections:
        secret = remote(url, headers={"Authorization": "Bearer one", "X-Team": "red"})
        plain = remote(other_url, id=McpServerId(numbered("mcp", 2)))
        same_address = McpServer(
            id=McpServerId(numbered("mcp", 3)),
            organization_id=OTHER_ORG,
            version=1,
            config=remote(url, headers={"Authorization": "Bearer two"}).config,
            created_at=plain.created_at,
            updated_at=plain.updated_at,
        )
        for _ in range(2):
            assert await headers_at(secret, one) == {"authorization": "Bearer one", "x-team": "red"}
            assert await headers_at(plain, two) == {}
            assert await headers_at(same_address, one) == {"authorization": "Bearer two"}


@pytest.mark.requirement("B11")
@GENERATIONS
@BODIES
async def test_a_reply_over_the_limit_says_its_size_and_the_connection_goes_on(
    negotiate: Negotiate, version: str, json_response: bool
) -> None:
    watched = WatchedServer()
    async with watched.serve(json_response=json_response) as url, sdk_connections(negotiate=negotiate) as connections:
        server = remote(url)
        within = await connections.call_tool(server, IN_RUN, a_call("big", size=3 * 1024 * 1024))
        assert len(text_of(within)) == 3 * 1024 * 1024
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("big", size=6 * 1024 * 1024))
        assert raised.value.kind is McpFailureKind.TOO_LARGE
        assert "exceeds the limit of 4194304 bytes" in raised.value.detail
        assert "reply of 6291" in raised.value.detail
        assert connections.status(server).protocol_version == version
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo", text="on"))) == "{'text': 'on'}"


async def test_arguments_a_modern_server_wants_in_headers_are_sent_there_too() -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections() as connections:
        for _ in range(2):
            reply = await connections.call_tool(remote(url), IN_RUN, a_call("routed", region="north"))
            assert text_of(reply) == "{'region': 'north'}"
        assert watched.headers["mcp-param-region"] == "north"
        assert watched.requests.count("tools/call") == 2


@pytest.mark.parametrize("arguments", [{}, {"region": None}])
async def test_an_argument_that_is_not_there_has_no_header(arguments: dict[str, object]) -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections() as connections:
        for region in ({"region": "north"}, arguments):
            reply = await connections.call_tool(remote(url), IN_RUN, a_call("routed", **region))
            assert text_of(reply) == str(region)
        assert "mcp-param-region" not in watched.headers


async def test_a_server_that_asks_a_person_is_told_that_nobody_is_there() -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections(negotiate=negotiate_handshake) as connections:
        reply = await connections.call_tool(remote(url), IN_RUN, a_call("ask"))
        assert text_of(reply) == "refused: Elicitation not supported"


@pytest.mark.requirement("B4", "B7")
async def test_news_of_changed_tools_of_a_modern_server_is_passed_on() -> None:
    watched, told = WatchedServer(), asyncio.Queue[McpServer]()
    async with watched.serve() as url, sdk_connections(on_tools_changed=told.put) as connections:
        server = remote(url)
        await connections.discover(server, IN_RUN, timeout_s=60)
        async with asyncio.timeout(60):
            while told.empty():  # the subscription may not have reached the server yet
                await watched.tools_changed()
                await asyncio.sleep(0.01)
            assert await told.get() == server


async def test_a_listener_to_changed_tools_that_fails_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    watched, told = WatchedServer(), asyncio.Queue[McpServer]()

    async def fail(server: McpServer) -> None:
        told.put_nowait(server)
        raise ValueError("the listener's own fault")

    caplog.set_level(logging.CRITICAL)
    async with watched.serve() as url, sdk_connections(on_tools_changed=fail) as connections:
        await connections.discover(remote(url), IN_RUN, timeout_s=60)
        async with asyncio.timeout(60):
            while told.qsize() < 2:
                await watched.tools_changed()
                await asyncio.sleep(0.01)


async def test_runs_that_share_a_server_share_one_connection() -> None:
    watched = WatchedServer()
    async with watched.serve() as url, sdk_connections() as connections:
        server = remote(url)
        await asyncio.gather(
            *(
                connections.call_tool(server, scope(run_id=a_run_id(number)), a_call("echo", text="hello"))
                for number in range(20)
            )
        )
        assert connections.connection_count == 1
