"""How many MCP servers an organization has started in all processes on a database."""

import asyncio

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import McpServerId
from domain.mcp.server import Isolation
from tests.builders import ORG, numbered
from tests.doubles.permit_leases import InMemoryPermitLeases, Neighbours
from tests.doubles.surroundings import FixedClock
from tests.integration.mcp.parts import IN_RUN, a_call, odd_server, sdk_connections, text_of, until


@pytest.mark.requirement("B10", "K3")
async def test_the_number_of_started_servers_holds_over_all_processes_and_an_idle_one_of_another_makes_room() -> None:
    leases, neighbours = InMemoryPermitLeases(FixedClock()), Neighbours()
    one, two = (neighbours.process(leases, holder) for holder in ("one", "two"))
    ids = [McpServerId(numbered("mcp", 100 + number)) for number in range(3)]
    servers = [odd_server(id=each, isolation=Isolation.SHARED) for each in ids]
    async with (
        sdk_connections(max_processes=2, permits=one) as here,
        sdk_connections(max_processes=2, permits=two) as there,
    ):
        for server in servers[:2]:
            await here.call_tool(server, IN_RUN, a_call("pid"))
        await there.call_tool(servers[2], IN_RUN, a_call("pid"))
        assert (here.connection_count, there.connection_count) == (1, 1)
        hanging = [
            asyncio.create_task(here.call_tool(servers[1], IN_RUN, a_call("hang"))),
            asyncio.create_task(there.call_tool(servers[2], IN_RUN, a_call("hang"))),
        ]
        await until(lambda: not any(connection.is_idle for each in (here, there) for connection in each._live))
        with pytest.raises(McpFailure) as raised:
            await here.call_tool(servers[0], IN_RUN, a_call("pid", timeout_s=0.5))
        assert raised.value.kind is McpFailureKind.BUSY
        waiting = asyncio.create_task(here.call_tool(servers[0], IN_RUN, a_call("echo")))
        await asyncio.sleep(0)
        for call in hanging:
            call.cancel()
        assert text_of(await waiting) == "{}"
        await here.close()  # before the check that `there` leaves no task
    await asyncio.gather(one.close(), two.close())
    assert leases.total(f"processes/{ORG}") == 0
