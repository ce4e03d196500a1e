"""A started server of the official SDK that changes a tool while a run of its own uses it."""

import asyncio
import sys
from dataclasses import replace

import pytest

from application.mcp.ports import McpCall, McpFailure, McpFailureKind
from domain.mcp.server import Isolation
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from infrastructure.mcp.connections.pool import SdkMcpConnections
from tests.integration.mcp.parts import IN_RUN, SERVERS, a_call, sdk_connections, started, text_of

CHANGING = started(sys.executable, str(SERVERS / "changing_server.py"), isolation=Isolation.RUN)


async def refusal(connections: SdkMcpConnections, call: McpCall) -> McpFailure:
    """Of the first call that is not let through: the news travels beside the answers."""
    while True:
        try:
            await connections.call_tool(CHANGING, IN_RUN, call)
        except McpFailure as failure:
            return failure


@pytest.mark.requirement("B7", "B13")
@pytest.mark.parametrize(
    ("negotiate", "version"), [(negotiate_any, "2026-07-28"), (negotiate_handshake, "2025-11-25")], ids=["new", "old"]
)
async def test_a_tool_that_changes_in_the_middle_of_a_run_is_not_called_any_more(
    negotiate: Negotiate, version: str
) -> None:
    async with sdk_connections(negotiate=negotiate) as connections:
        catalog = await connections.discover(CHANGING, IN_RUN, timeout_s=60)
        assert catalog.protocol_version == version
        known = {tool.name: tool for tool in catalog.tools}
        look = replace(a_call("look"), definition=known["look"])
        assert text_of(await connections.call_tool(CHANGING, IN_RUN, look)) == "seen"

        await connections.call_tool(CHANGING, IN_RUN, replace(a_call("change"), definition=known["change"]))

        async with asyncio.timeout(60):
            assert (await refusal(connections, look)).kind is McpFailureKind.DEFINITION_CHANGED
        assert connections.connection_count == 1
