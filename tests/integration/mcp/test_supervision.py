"""Real servers that are lost, stopped, forgetful or too many: they come back, or are left alone,
and cost nobody else."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from application.mcp.catalog_reader import CatalogReader
from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, ServerState
from application.system.rates import LocalRates
from application.tools.toolset_builder import ToolsetBuilder
from domain.ids import McpServerId
from domain.mcp.backoff import Backoff
from domain.mcp.catalog import McpCatalog
from domain.mcp.restarts import RestartLimit
from domain.mcp.server import Isolation, McpServer
from infrastructure.mcp.connections.negotiation import negotiate_handshake
from infrastructure.mcp.connections.pool import SdkMcpConnections
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.wrappers.guarded_connections import CallLimits, guarded
from infrastructure.mcp.wrappers.supervised_connections import SupervisedConnections
from infrastructure.runtime.system import SystemClock
from tests.builders import ORG, OTHER_ORG, SERVER, a_run_id, an_agent, an_organization, numbered
from tests.circumstances import circumstances
from tests.doubles.mcp_servers import InMemoryMcpCatalogStore, InMemoryMcpServerStore
from tests.doubles.organizations import InMemoryOrganizationStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.integration.mcp.parts import (
    IN_RUN,
    a_call,
    answering,
    descendants,
    free_port,
    http,
    odd_server,
    remote,
    scope,
    sdk_connections,
    started,
    text_of,
    time_passes,
    until,
)
from tests.integration.mcp.test_broken_http_servers import message_in, reply
from tests.integration.mcp.watched_server import WatchedServer

QUICK = Backoff(first_s=0.05, longest_s=0.2)


class Owned:
    """Stands where the lazily loaded connections stand in the service."""

    async def warm(self) -> None:
        """Loaded already."""

    async def close(self) -> None:
        """The test closes them."""

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """Nobody watches any here."""


@dataclass
class Supervision:
    """Supervised connections and what they listed."""

    connections: SupervisedConnections
    inside: SdkMcpConnections
    listed: list[McpCatalog] = field(default_factory=list)


@asynccontextmanager
async def supervision(
    *, keep_alive_s: float = 20.0, restart_limit: RestartLimit | None = None
) -> AsyncIterator[Supervision]:
    async def relist(server: McpServer) -> None:
        on_behalf = ConnectionScope(organization_id=server.organization_id)
        supervised.listed.append(await supervised.connections.discover(server, on_behalf, timeout_s=60))

    async def tools_changed(server: McpServer) -> None:
        await supervised.connections.tools_changed(server)

    def lost(server: McpServer) -> None:
        supervised.connections.lost(server)

    async with sdk_connections(
        on_tools_changed=tools_changed, on_lost=lost, keep_alive_s=keep_alive_s, restart_limit=restart_limit
    ) as inside:
        connections = SupervisedConnections(
            guarded(inside, rates=LocalRates(clock=SystemClock()), clock=SystemClock(), limits=CallLimits()),
            owned=Owned(),
            relist=relist,
            clock=SystemClock(),
            backoff=QUICK,
        )
        supervised = Supervision(connections, inside)
        try:
            yield supervised
        finally:
            await connections.close()


async def pid_of(connections: SdkMcpConnections | SupervisedConnections, server: McpServer, run: int = 1) -> int:
    return int(text_of(await connections.call_tool(server, scope(run_id=a_run_id(run)), a_call("pid"))))


def other(number: int) -> McpServerId:
    return McpServerId(numbered("mcp", 100 + number))


@pytest.mark.requirement("B3", "B7")
async def test_a_shared_server_that_dies_is_started_again_by_itself_and_listed_anew() -> None:
    server = odd_server(isolation=Isolation.SHARED)
    async with supervision() as harness:
        first = await pid_of(harness.connections, server)
        os.kill(first, signal.SIGKILL)
        await until(lambda: harness.listed)
        assert harness.connections.status(server).state is ServerState.CONNECTED
        assert "pid" in [tool.name for tool in harness.listed[0].tools]
        assert await pid_of(harness.connections, server) != first
        await until(lambda: harness.connections.servers_reconnecting == 0)


@pytest.mark.requirement("B3", "B7")
async def test_a_shared_server_that_crashes_in_a_call_loses_that_call_and_is_back_for_the_next() -> None:
    server = odd_server(isolation=Isolation.SHARED)
    async with supervision() as harness:
        with pytest.raises(McpFailure) as raised:
            await harness.connections.call_tool(server, IN_RUN, a_call("exit"))
        assert raised.value.kind is McpFailureKind.CONNECTION_LOST
        await until(lambda: harness.listed)
        assert text_of(await harness.connections.call_tool(server, IN_RUN, a_call("echo"))) == "{}"


@pytest.mark.requirement("B7", "B15")
async def test_a_server_that_belongs_to_a_run_is_started_again_by_its_next_call_only() -> None:
    server = odd_server(isolation=Isolation.RUN)
    async with supervision() as harness:
        os.kill(await pid_of(harness.connections, server), signal.SIGKILL)
        await until(lambda: harness.connections.status(server).state is ServerState.UNHEALTHY)
        await until(lambda: harness.inside.connection_count == 0)
        assert harness.connections.servers_reconnecting == 0
        await pid_of(harness.connections, server)


async def listened_to(watched: WatchedServer, harness: Supervision) -> None:
    """Until the client has the stream of changes, by which alone it sees that a server goes
    away."""
    async with asyncio.timeout(60):
        while not harness.listed:
            await watched.tools_changed()
            await asyncio.sleep(0.01)


@pytest.mark.requirement("B7")
async def test_a_remote_server_that_goes_away_is_connected_again_when_it_is_back() -> None:
    port, watched = free_port(), WatchedServer()
    server = remote(f"http://127.0.0.1:{port}/mcp", isolation=Isolation.SHARED)
    async with supervision() as harness:
        async with watched.serve(port=port):
            await harness.connections.call_tool(server, IN_RUN, a_call("echo"))
            await listened_to(watched, harness)
        await until(lambda: harness.connections.servers_reconnecting == 1)
        assert harness.connections.status(server).last_error is not None
        watched.tools["later"] = WatchedServer.definition("later")
        async with watched.serve(port=port):
            await until(lambda: any(tool.name == "later" for catalog in harness.listed for tool in catalog.tools))
            assert harness.connections.status(server).state is ServerState.CONNECTED
            await until(lambda: harness.connections.servers_reconnecting == 0)
            await harness.connections.forget(ORG, SERVER)


@pytest.mark.requirement("B7")
async def test_a_server_whose_credentials_are_refused_is_not_tried_again_by_itself() -> None:
    refused = http("401 Unauthorized", "text/plain", b"")
    reached = 0

    async def respond(request: bytes) -> bytes:
        nonlocal reached
        reached += 1
        return refused

    async with answering(respond) as address, supervision() as harness:
        with pytest.raises(McpFailure):
            await harness.connections.call_tool(remote(address), IN_RUN, a_call("echo"))
        assert (harness.connections.servers_reconnecting, reached) == (0, 1)


@pytest.mark.usefixtures("patient_with_launchers")
@pytest.mark.requirement("B3", "B7")
async def test_a_server_that_crashes_over_and_over_is_left_alone_until_somebody_asks_for_it() -> None:
    server = odd_server()
    limit = RestartLimit(crashes=2, stable_s=60, pause_s=600)
    async with sdk_connections(restart_limit=limit) as connections:
        for _ in range(2):
            with pytest.raises(McpFailure) as raised:
                await connections.call_tool(server, IN_RUN, a_call("exit"))
            assert raised.value.kind is McpFailureKind.CONNECTION_LOST
            await until(lambda: connections.connection_count == 0)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(server, IN_RUN, a_call("echo"))
        failure = raised.value
        assert (failure.kind, connections.connection_count) == (McpFailureKind.NOT_CONNECTED, 0)
        assert failure.retry_after_s == pytest.approx(600, abs=30)
        status = connections.status(server)
        assert status.state is ServerState.ERROR
        assert "exited with code 9" in (status.last_error or "")
        assert "not started again for 10 min" in (status.last_error or "")
        await pid_of(connections, server, run=2)  # another run's own server
        connections.forgive(ORG, SERVER)
        await pid_of(connections, server)
        assert connections.status(server).last_error is None


@pytest.mark.requirement("B4", "B7")
async def test_a_started_server_that_stops_answering_is_noticed_while_nobody_calls_it() -> None:
    server = odd_server(isolation=Isolation.SHARED)
    lost = asyncio.Queue[McpServer]()
    async with sdk_connections(keep_alive_s=1.0, on_lost=lost.put_nowait) as connections:
        pid = await pid_of(connections, server)
        os.kill(pid, signal.SIGSTOP)
        async with asyncio.timeout(60):
            assert await lost.get() == server
        status = connections.status(server)
        assert (status.state, status.last_error) == (ServerState.UNHEALTHY, "The server stopped answering.")
        await until(lambda: pid not in descendants())
        assert await pid_of(connections, server) != pid


@pytest.mark.requirement("B3", "B4")
async def test_pings_neither_disturb_a_server_nor_keep_an_unused_connection_open() -> None:
    lasting = odd_server("--tell-pings", isolation=Isolation.SHARED)
    unused = odd_server("--tell-pings", id=other(1), isolation=Isolation.SHARED, idle_timeout_s=15.0)
    # The interval is also the deadline of a ping: a busy machine must be able to answer within it.
    async with sdk_connections(keep_alive_s=10.0) as connections:
        first = await pid_of(connections, lasting)
        await pid_of(connections, unused)
        time_passes(10)
        await until(lambda: all("pinged" in connections.logs(server) for server in (lasting, unused)))
        assert await pid_of(connections, lasting) == first  # it answers one after the other
        time_passes(5)
        await until(lambda: connections.status(unused).state is ServerState.DISCONNECTED)
        time_passes(10)
        await until(lambda: connections.logs(lasting).count("pinged") >= 2)
        assert await pid_of(connections, lasting) == first


@pytest.mark.requirement("B4", "B7")
async def test_a_session_that_the_server_forgot_is_opened_anew_once_for_all_its_calls() -> None:
    sessions: list[str] = []
    calls = 0

    async def respond(request: bytes) -> bytes:
        nonlocal calls
        if not request.startswith(b"POST"):
            return http("405 Method Not Allowed", "text/plain", b"")
        message = message_in(request)
        if message["method"] == "initialize":
            sessions.append(f"session-{len(sessions) + 1}")
            info = {"name": "forgetful", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return http("200 OK", "application/json", as_json(message, result), f"mcp-session-id: {sessions[-1]}")
        if f"mcp-session-id: {sessions[-1]}".encode() not in request.lower():
            return http("404 Not Found", "text/plain", b"")
        if "id" not in message:
            return http("202 Accepted", "text/plain", b"")
        calls += 1
        return http("200 OK", "application/json", as_json(message, {"content": []}))

    async with answering(respond) as address, sdk_connections(negotiate=negotiate_handshake) as connections:
        server = remote(address, max_concurrency=50)
        for _ in range(2):
            await asyncio.gather(*(connections.call_tool(server, IN_RUN, a_call("echo")) for _ in range(20)))
        assert len(sessions) == 1
        sessions[0] = "forgotten"
        await asyncio.gather(*(connections.call_tool(server, IN_RUN, a_call("echo")) for _ in range(20)))
        assert (len(sessions), calls) == (2, 60)


def as_json(message: dict[str, object], result: object) -> bytes:
    return json.dumps(reply(message["id"], result)).encode()


@pytest.mark.requirement("B4", "B7")
async def test_news_of_changed_tools_of_an_older_server_lists_them_anew() -> None:
    server = odd_server(isolation=Isolation.SHARED)
    async with supervision() as harness:
        await harness.connections.call_tool(server, IN_RUN, a_call("change"))
        await until(lambda: harness.listed)
        assert harness.listed[0].protocol_version == "2025-11-25"
        assert any(tool.name.startswith("tool_") for tool in harness.listed[0].tools)


@pytest.mark.requirement("B3", "B10")
async def test_an_organization_has_only_so_many_servers_started_and_the_one_idle_for_longest_makes_room() -> None:
    servers = [odd_server(id=other(number), isolation=Isolation.SHARED) for number in range(3)]
    before = descendants()
    async with sdk_connections(max_processes=2) as connections:
        pids = [await pid_of(connections, server) for server in servers[:2]]
        assert await pid_of(connections, servers[0]) == pids[0]
        await pid_of(connections, servers[2])
        assert connections.connection_count == 2
        assert await pid_of(connections, servers[0]) == pids[0]
        await until(lambda: pids[1] not in descendants() - before)


@pytest.mark.requirement("B10", "B15")
async def test_while_all_started_servers_are_in_use_one_more_waits_and_another_organization_does_not() -> None:
    busy, late = (odd_server(id=other(number), isolation=Isolation.SHARED) for number in range(2))
    others = odd_server(id=other(2), organization_id=OTHER_ORG)
    async with sdk_connections(max_processes=1) as connections:
        hanging = asyncio.create_task(connections.call_tool(busy, IN_RUN, a_call("hang")))
        await until(lambda: connections.status(busy).state is ServerState.CONNECTED)
        with pytest.raises(McpFailure) as raised:
            await connections.call_tool(late, IN_RUN, a_call("pid", timeout_s=0.2))
        assert raised.value.kind is McpFailureKind.BUSY
        assert text_of(await connections.call_tool(others, scope(OTHER_ORG), a_call("echo"))) == "{}"
        waiting = asyncio.create_task(connections.call_tool(late, IN_RUN, a_call("echo")))
        await asyncio.sleep(0)
        hanging.cancel()
        assert text_of(await waiting) == "{}"


async def test_started_servers_have_their_resource_limits() -> None:
    async with sdk_connections(limits={"core": 0, "nofile": 77}) as connections:
        pid = await pid_of(connections, odd_server())
        limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    [files] = [line.split()[3:5] for line in limits if line.startswith("Max open files")]
    [core] = [line.split()[4:6] for line in limits if line.startswith("Max core file size")]
    assert (files, core) == (["77", "77"], ["0", "0"])


@pytest.mark.requirement("B5")
async def test_a_hanging_a_crashing_and_an_unreachable_server_hold_up_the_first_run_once_and_no_other() -> None:
    deadline_s, bound_s = 30.0, 45.0
    servers = [
        started("sleep", "1000", slug="hanging", id=other(1)),
        started("sh", "-c", "exit 3", slug="crashing", id=other(2)),
        remote(f"http://127.0.0.1:{free_port()}/mcp", slug="unreachable", id=other(3)),
        odd_server(slug="good", id=other(4), isolation=Isolation.SHARED),
    ]
    state, clock = InMemoryState(), FixedClock()
    state.organizations[ORG] = an_organization()
    state.servers = {server.id: server for server in servers}
    state.organizations[ORG] = an_organization()
    stored = InMemoryMcpCatalogStore(state)
    async with supervision() as harness:
        warm = CatalogReader(
            catalogs=stored,
            catalog_updater=CatalogUpdater(
                catalogs=stored,
                connections=harness.connections,
                organizations=InMemoryOrganizationStore(state),
                clock=clock,
                ids=SequentialIds(),
            ),
            clock=clock,
            deadline_s=deadline_s,
        )
        tools = ToolsetBuilder(
            circumstances=circumstances(state, clock),
            native_tools={},
            displayable_tools={},
            servers=InMemoryMcpServerStore(state),
            catalogs=warm,
            connections=harness.connections,
            switch=McpSwitch(enabled=True, organizations=InMemoryOrganizationStore(state)),
            organizations=InMemoryOrganizationStore(state),
        )
        config = an_agent(mcp_servers=tuple(server.config.slug for server in servers)).config
        await pid_of(harness.connections, servers[-1])  # a busy machine may start it later than the deadline
        waiting = asyncio.create_task(tools.toolset(config, IN_RUN))
        await until(lambda: servers[-1].id in state.catalogs)
        time_passes(deadline_s)
        async with asyncio.timeout(bound_s):
            first = await waiting
        assert {overview.slug for overview in first.servers if overview.unavailable} == {
            "hanging",
            "crashing",
            "unreachable",
        }
        assert first.find("mcp__good__echo") is not None
        processes = descendants()
        second = await tools.toolset(config, scope(run_id=a_run_id(2)))
        for number in range(3, 10):
            assert await tools.toolset(config, scope(run_id=a_run_id(number))) is second
        assert second.tools == first.tools
        assert descendants() <= processes
        await warm.close()
