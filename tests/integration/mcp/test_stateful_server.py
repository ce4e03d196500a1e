"""Who shares the state of a real server that keeps some: server-everything, whose simulated logging
is on or off."""

import shutil
from pathlib import Path

import pytest

from application.mcp.ports import ConnectionScope
from domain.ids import McpServerId
from domain.mcp.server import Isolation
from infrastructure.mcp.connections.pool import SdkMcpConnections
from tests.builders import ORG, OTHER_ORG, SERVER, a_run_id, a_thread_id, numbered
from tests.integration.mcp.parts import EVERYTHING, a_call, scope, sdk_connections, started, text_of

OTHER_SERVER = McpServerId(numbered("mcp", 2))
FIRST = scope(run_id=a_run_id(1), thread_id=a_thread_id(1))
SAME_THREAD = scope(run_id=a_run_id(2), thread_id=a_thread_id(1))
OTHER_THREAD = scope(run_id=a_run_id(3), thread_id=a_thread_id(2))


async def switched_on(connections: SdkMcpConnections, isolation: Isolation, on_behalf: ConnectionScope) -> bool:
    """Toggle the server's logging; whether it is on now."""
    id = SERVER if on_behalf.organization_id == ORG else OTHER_SERVER
    server = started("node", EVERYTHING, "stdio", id=id, isolation=isolation, organization_id=on_behalf.organization_id)
    said = text_of(await connections.call_tool(server, on_behalf, a_call("toggle-simulated-logging")))
    assert said.startswith(("Started", "Stopped")), said
    return said.startswith("Started")


@pytest.mark.requirement("B15")
@pytest.mark.skipif(shutil.which("node") is None or not Path(EVERYTHING).exists(), reason="needs `make node`")
@pytest.mark.parametrize(
    ("isolation", "same_thread_sees_it", "other_thread_sees_it"),
    [(Isolation.RUN, False, False), (Isolation.THREAD, True, False), (Isolation.SHARED, True, True)],
    ids=["run", "thread", "shared"],
)
async def test_the_state_of_a_real_server_is_seen_by_those_who_share_it_and_never_by_another_organization(
    isolation: Isolation, same_thread_sees_it: bool, other_thread_sees_it: bool
) -> None:
    async with sdk_connections() as connections:
        assert await switched_on(connections, isolation, FIRST)
        # Whoever finds it switched on switches it off, and back on for the next.
        for on_behalf, sees_it in ((SAME_THREAD, same_thread_sees_it), (OTHER_THREAD, other_thread_sees_it)):
            assert await switched_on(connections, isolation, on_behalf) is not sees_it
            if sees_it:
                assert await switched_on(connections, isolation, on_behalf)
        others = scope(OTHER_ORG, run_id=FIRST.run_id)
        assert await switched_on(connections, isolation, others)
        assert not await switched_on(connections, isolation, FIRST)
