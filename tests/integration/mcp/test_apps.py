"""Servers with apps, made with the official library: they are told that clients of the gateway
render apps."""

import pytest
from mcp.server.apps import Apps, client_supports_apps
from mcp.server.mcpserver import Context, MCPServer

from domain.mcp.apps import Audience
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiate_handshake
from tests.integration.mcp.parts import IN_RUN, a_call, remote, sdk_connections, serving, text_of

URI = "ui://clock/app.html"


def a_clock() -> MCPServer:
    apps = Apps()

    @apps.tool(resource_uri=URI, visibility=["app"])
    def time(ctx: Context) -> str:
        """Says whether the client renders apps."""
        return "rendered" if client_supports_apps(ctx) else "text"

    apps.add_html_resource(URI, "<!doctype html><title>Clock</title>")
    return MCPServer("clock", extensions=[apps])


@pytest.mark.requirement("X6")
@pytest.mark.parametrize("negotiate", [negotiate_any, negotiate_handshake])
async def test_a_server_of_either_generation_is_told_that_apps_are_rendered(negotiate: Negotiate) -> None:
    async with serving(a_clock().streamable_http_app()) as url, sdk_connections(negotiate=negotiate) as connections:
        server = remote(f"{url}/mcp")
        (tool,) = (await connections.discover(server, IN_RUN, timeout_s=60)).tools
        assert tool.app_links == {URI}
        assert tool.audience == {Audience.APP}
        assert text_of(await connections.call_tool(server, IN_RUN, a_call("time"))) == "rendered"
