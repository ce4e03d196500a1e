"""The contract of live MCP connections, over scripted servers and over the SDK with a real
process."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Protocol, cast

import pytest

from application.mcp.ports import (
    ConnectionScope,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpProgress,
    McpReply,
    ServerState,
)
from application.system.rates import LocalRates
from domain.ids import McpServerId
from domain.mcp.server import Isolation, McpServer
from domain.mcp.used_tools import NOT_USED
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.wrappers.guarded_connections import CallLimits, guarded
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections
from tests.builders import ORG, OTHER_ORG, SERVER, a_run_id, a_thread_id
from tests.doubles.mcp_connections import (
    Answer,
    InMemoryMcpConnections,
    InMemoryMcpServer,
    InMemoryTool,
    Invocation,
    text_reply,
)
from tests.doubles.surroundings import FixedClock
from tests.integration.mcp.parts import (
    IN_RUN,
    PATIENCE_S,
    a_call,
    plain_server,
    scope,
    sdk_connections,
    started,
    text_of,
    until,
)

MISSING = "no-such-command-anywhere"
OTHER_SERVER = McpServerId("mcp_00000000000000000000000002")


class Leg(Protocol):
    """One adapter with a server `started` that has the tools of plain_server.py, and `missing`,
    which cannot start."""

    @property
    def connections(self) -> McpConnections: ...

    async def is_hanging(self, server: McpServer) -> None:
        """Waits until the tool `hang` runs."""
        ...

    async def is_cancelled(self, server: McpServer) -> None:
        """Waits until the server knows that a call was given up."""
        ...


class InMemoryConnectionsLeg:
    def __init__(self) -> None:
        self.hanging = asyncio.Event()
        tools: dict[str, InMemoryTool | Answer] = {
            "count": self.count,
            "echo": self.echo,
            "hang": self.hang,
            "meta": self.meta,
            "progress": self.progress,
            "refuse": McpFailure(McpFailureKind.SERVER_ERROR, "not today", rpc_code=-32050),
        }
        unreachable = McpFailure(McpFailureKind.NOT_CONNECTED, "The command was not found.")
        self.connections = InMemoryMcpConnections(
            {"started": InMemoryMcpServer(tools=tools), "missing": InMemoryMcpServer(unreachable=unreachable)}
        )

    async def is_hanging(self, server: McpServer) -> None:
        await self.hanging.wait()

    async def is_cancelled(self, server: McpServer) -> None:
        assert [call.tool_name for call in self.connections.cancelled] == ["hang"]

    async def count(self, invocation: Invocation) -> McpReply:
        counted = cast(int, invocation.memory.get("counted", 0)) + 1
        invocation.memory["counted"] = counted
        return text_reply(str(counted))

    async def echo(self, invocation: Invocation) -> McpReply:
        return text_reply(str(invocation.arguments["text"]))

    async def meta(self, invocation: Invocation) -> McpReply:
        return text_reply(json.dumps(dict(invocation.meta)))

    async def hang(self, invocation: Invocation) -> McpReply:
        self.hanging.set()
        await asyncio.Event().wait()
        return text_reply("never")

    async def progress(self, invocation: Invocation) -> McpReply:
        for number in (1.0, 2.0):
            await invocation.report_progress(McpProgress(progress=number, total=2.0, message="on it"))
        return text_reply("done")


class SdkConnectionsLeg:
    def __init__(self, connections: SdkMcpConnections) -> None:
        self.connections = connections

    async def is_hanging(self, server: McpServer) -> None:
        await until(lambda: "hanging" in self.connections.logs(server))

    async def is_cancelled(self, server: McpServer) -> None:
        await until(lambda: "told that nobody waits" in self.connections.logs(server))


class GuardedConnectionsLeg:
    """Behind the limits of servers and organizations, and supervised, as the service has them."""

    def __init__(self) -> None:
        self.inside = InMemoryConnectionsLeg()
        clock = FixedClock()
        self.connections = SupervisedConnections(
            guarded(self.inside.connections, rates=LocalRates(clock=clock), clock=clock, limits=CallLimits()),
            owned=NothingToOwn(),
            relist=self.relist,
            clock=clock,
        )

    async def relist(self, server: McpServer) -> None:
        raise AssertionError("nothing is lost here, and no tools change")

    async def is_hanging(self, server: McpServer) -> None:
        await self.inside.is_hanging(server)

    async def is_cancelled(self, server: McpServer) -> None:
        await self.inside.is_cancelled(server)


class NothingToOwn:
    async def warm(self) -> None:
        """In-memory connections need no loading."""

    async def close(self) -> None:
        """Nor closing."""

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """Nobody watches any here."""


@pytest.fixture(params=["memory", "guarded", "sdk"])
async def leg(request: pytest.FixtureRequest) -> AsyncIterator[Leg]:
    if request.param == "memory":
        yield InMemoryConnectionsLeg()
        return
    if request.param == "guarded":
        yield GuardedConnectionsLeg()
        return
    async with sdk_connections() as connections:
        yield SdkConnectionsLeg(connections)


async def counted(leg: Leg, server: McpServer, run: int, thread: int = 1) -> int:
    used_by = scope(server.organization_id, thread_id=a_thread_id(thread), run_id=a_run_id(run))
    return int(text_of(await leg.connections.call_tool(server, used_by, a_call("count"))))


@pytest.mark.requirement("B3")
async def test_a_call_is_answered_with_what_the_tool_said(leg: Leg) -> None:
    reply = await leg.connections.call_tool(plain_server(), IN_RUN, a_call("echo", text="good\nmorning"))
    assert (text_of(reply), reply.is_error, reply.structured) == ("good\nmorning", False, None)


@pytest.mark.requirement("B13")
async def test_a_tool_is_called_only_if_the_server_describes_it_as_the_caller_knows_it(leg: Leg) -> None:
    server = plain_server()
    catalog = await leg.connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
    known = {tool.name: tool for tool in catalog.tools}
    same = replace(a_call("count"), definition=known["count"])
    other = replace(a_call("count"), definition=replace(known["count"], description="Counts down."))
    afresh = scope(run_id=a_run_id(7))

    assert text_of(await leg.connections.call_tool(server, IN_RUN, same)) == "1"
    for used_by in (IN_RUN, afresh):
        with pytest.raises(McpFailure) as refused:
            await leg.connections.call_tool(server, used_by, other)
        assert refused.value.kind is McpFailureKind.DEFINITION_CHANGED
    # Neither refused call was sent.
    assert text_of(await leg.connections.call_tool(server, IN_RUN, same)) == "2"
    assert text_of(await leg.connections.call_tool(server, afresh, same)) == "1"


async def test_a_call_s_meta_reaches_the_server(leg: Leg) -> None:
    call = replace(a_call("meta"), meta={"traceparent": "00-1-2-01"})
    reply = await leg.connections.call_tool(plain_server(), IN_RUN, call)
    assert json.loads(text_of(reply))["traceparent"] == "00-1-2-01"


@pytest.mark.requirement("A5")
async def test_a_protocol_error_is_a_failure_in_the_server_s_own_words(leg: Leg) -> None:
    with pytest.raises(McpFailure) as raised:
        await leg.connections.call_tool(plain_server(), IN_RUN, a_call("refuse"))
    failure = raised.value
    assert (failure.kind, failure.detail, failure.rpc_code) == (McpFailureKind.SERVER_ERROR, "not today", -32050)


async def test_a_tool_the_server_does_not_have_is_its_protocol_error(leg: Leg) -> None:
    with pytest.raises(McpFailure) as raised:
        await leg.connections.call_tool(plain_server(), IN_RUN, a_call("fly"))
    assert (raised.value.kind, raised.value.rpc_code) == (McpFailureKind.SERVER_ERROR, -32602)


async def test_a_call_without_an_answer_times_out_and_the_next_one_is_answered(leg: Leg) -> None:
    server = plain_server()
    await leg.connections.call_tool(server, IN_RUN, a_call("echo", text="awake"))
    with pytest.raises(McpFailure) as raised:
        await leg.connections.call_tool(server, IN_RUN, a_call("hang", timeout_s=0.2))
    assert raised.value.kind is McpFailureKind.TIMEOUT
    assert text_of(await leg.connections.call_tool(server, IN_RUN, a_call("echo", text="still"))) == "still"


@pytest.mark.requirement("A12", "B4")
async def test_cancelling_the_caller_cancels_its_call_at_the_server_and_no_other(leg: Leg) -> None:
    server = plain_server()
    hanging = asyncio.create_task(leg.connections.call_tool(server, IN_RUN, a_call("hang")))
    await leg.is_hanging(server)
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    await leg.is_cancelled(server)
    assert text_of(await leg.connections.call_tool(server, IN_RUN, a_call("echo", text="still"))) == "still"


@pytest.mark.requirement("B4")
async def test_progress_is_reported_while_the_call_runs(leg: Leg) -> None:
    seen = []

    async def on_progress(progress: McpProgress) -> None:
        seen.append(progress)

    reply = await leg.connections.call_tool(plain_server(), IN_RUN, a_call("progress"), on_progress)
    assert text_of(reply) == "done"
    assert seen == [McpProgress(progress=number, total=2.0, message="on it") for number in (1.0, 2.0)]


async def test_an_error_of_whoever_listens_to_progress_does_not_break_the_call(leg: Leg) -> None:
    async def on_progress(progress: McpProgress) -> None:
        raise ValueError("the listener's own fault")

    reply = await leg.connections.call_tool(plain_server(), IN_RUN, a_call("progress"), on_progress)
    assert text_of(reply) == "done"


@pytest.mark.requirement("B3", "B5")
async def test_discovery_lists_all_tools_by_name(leg: Leg) -> None:
    server = plain_server(version=3)
    catalog = await leg.connections.discover(server, IN_RUN, timeout_s=PATIENCE_S)
    assert [tool.name for tool in catalog.tools] == ["count", "echo", "hang", "meta", "progress", "refuse"]
    assert (catalog.server_id, catalog.server_version, catalog.skipped) == (SERVER, 3, ())
    assert leg.connections.status(server).tool_count == 6


@pytest.mark.requirement("B5")
async def test_tools_that_the_settings_do_not_name_are_listed_as_left_out(leg: Leg) -> None:
    server = plain_server()
    few = replace(server, config=replace(server.config, tools=("echo", "c*")))
    catalog = await leg.connections.discover(few, IN_RUN, timeout_s=PATIENCE_S)
    assert [tool.name for tool in catalog.tools] == ["count", "echo"]
    assert [tool.name for tool in catalog.skipped] == ["hang", "meta", "progress", "refuse"]
    assert {tool.reason for tool in catalog.skipped} == {NOT_USED}


@pytest.mark.requirement("B3")
async def test_the_status_follows_the_connection(leg: Leg) -> None:
    server = plain_server()
    assert leg.connections.status(server).state is ServerState.DISCONNECTED
    await leg.connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    status = leg.connections.status(server)
    assert (status.state, status.last_error) == (ServerState.CONNECTED, None)
    assert status.protocol_version is not None


async def test_a_server_that_cannot_be_started_is_not_connected_and_its_status_says_why(leg: Leg) -> None:
    server = started(MISSING, slug="missing")
    for use in (
        leg.connections.call_tool(server, IN_RUN, a_call("echo", text="hello")),
        leg.connections.discover(server, IN_RUN, timeout_s=PATIENCE_S),
    ):
        with pytest.raises(McpFailure) as raised:
            await use
        assert (raised.value.kind, raised.value.detail) == (McpFailureKind.NOT_CONNECTED, "The command was not found.")
    status = leg.connections.status(server)
    assert (status.state, status.last_error) == (ServerState.ERROR, "The command was not found.")


async def test_a_disabled_server_is_not_used(leg: Leg) -> None:
    server = plain_server(enabled=False)
    with pytest.raises(McpFailure) as raised:
        await leg.connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))
    assert raised.value.kind is McpFailureKind.DISABLED
    assert leg.connections.status(server).state is ServerState.DISABLED


@pytest.mark.requirement("B15")
@pytest.mark.parametrize(
    ("isolation", "counts"),
    [(Isolation.RUN, [1, 2, 1, 1]), (Isolation.THREAD, [1, 2, 3, 1]), (Isolation.SHARED, [1, 2, 3, 4])],
)
async def test_isolation_decides_who_shares_a_connection(leg: Leg, isolation: Isolation, counts: list[int]) -> None:
    server = plain_server(isolation=isolation)
    uses = [(1, 1), (1, 1), (2, 1), (3, 2)]
    assert [await counted(leg, server, run, thread) for run, thread in uses] == counts


@pytest.mark.requirement("B15")
async def test_a_use_that_names_no_run_has_a_connection_of_its_own(leg: Leg) -> None:
    server = plain_server(isolation=Isolation.RUN)
    for _ in range(2):
        reply = await leg.connections.call_tool(server, scope(run_id=None), a_call("count"))
        assert text_of(reply) == "1"


@pytest.mark.requirement("B15")
async def test_organizations_share_nothing_though_all_else_is_equal(leg: Leg) -> None:
    server = plain_server(isolation=Isolation.SHARED)
    others = plain_server(isolation=Isolation.SHARED, organization_id=OTHER_ORG)
    assert [await counted(leg, server, 1), await counted(leg, others, 1), await counted(leg, server, 1)] == [1, 1, 2]


@pytest.mark.requirement("B15")
async def test_a_run_that_is_over_leaves_its_own_connections_and_no_others(leg: Leg) -> None:
    own, threads = plain_server(), plain_server(id=OTHER_SERVER, isolation=Isolation.THREAD)
    for server in (own, threads):
        assert [await counted(leg, server, run) for run in (1, 2)] == ([1, 1] if server is own else [1, 2])
    await leg.connections.release(scope(ORG, thread_id=a_thread_id(1), run_id=a_run_id(1)))
    assert [await counted(leg, own, run) for run in (1, 2)] == [1, 2]
    assert await counted(leg, threads, 1) == 3


@pytest.mark.requirement("B15")
async def test_a_thread_that_is_over_leaves_its_connections(leg: Leg) -> None:
    server = plain_server(isolation=Isolation.THREAD)
    assert [await counted(leg, server, run) for run in (1, 1)] == [1, 2]
    await leg.connections.release(scope(OTHER_ORG, thread_id=a_thread_id(1), run_id=None))
    assert await counted(leg, server, 1) == 3
    await leg.connections.release(scope(ORG, thread_id=a_thread_id(1), run_id=None))
    assert await counted(leg, server, 1) == 1


async def test_a_changed_server_is_connected_anew(leg: Leg) -> None:
    before, after = plain_server(), plain_server(version=2)
    assert [await counted(leg, before, 1), await counted(leg, before, 1), await counted(leg, after, 1)] == [1, 2, 1]


async def test_a_forgotten_server_is_disconnected(leg: Leg) -> None:
    server = plain_server()
    assert await counted(leg, server, 1) == 1
    await leg.connections.forget(OTHER_ORG, SERVER)
    assert await counted(leg, server, 1) == 2
    await leg.connections.forget(ORG, SERVER)
    assert leg.connections.status(server).state is ServerState.DISCONNECTED
    assert await counted(leg, server, 1) == 1


@pytest.mark.requirement("B7")
async def test_a_server_that_is_forgiven_stands_as_before(leg: Leg) -> None:
    server = plain_server()
    assert await counted(leg, server, 1) == 1
    leg.connections.forgive(ORG, SERVER)
    assert await counted(leg, server, 1) == 2
    assert leg.connections.status(server).state is ServerState.CONNECTED
