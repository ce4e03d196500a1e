"""Every protocol version that a server may choose in the handshake, and one that nobody knows."""

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from tests.integration.mcp.parts import IN_RUN, a_call, odd_server, sdk_connections, text_of

pytestmark = pytest.mark.requirement("B4")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_server_is_spoken_to_in_the_version_it_chose(version: str) -> None:
    server = odd_server(f"--version={version}")
    async with sdk_connections() as connections:
        catalog = await connections.discover(server, IN_RUN, timeout_s=60)
        assert catalog.protocol_version == version
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("echo", text="hello"))) == '{"text": "hello"}'
        assert connections.status(server).protocol_version == version


async def test_a_version_that_nobody_released_is_no_connection() -> None:
    async with sdk_connections() as connections:
        with pytest.raises(McpFailure) as raised:
            await connections.discover(odd_server("--version=2099-01-01"), IN_RUN, timeout_s=60)
        assert raised.value.kind is McpFailureKind.NOT_CONNECTED
        assert raised.value.detail == "The server supports no MCP version that Dragoman supports."
