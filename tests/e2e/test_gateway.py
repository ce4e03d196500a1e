"""The gateway as other agents meet it: official clients of both generations, over HTTP, against a
real MCP server."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from tests.e2e.service import Json, Service, a_turn, serving


def a_gateway_toolset(service: Service, **settings: object) -> tuple[Json, Path]:
    """An agent with a watched server; an open session and the server's log."""
    log = service.watched_server("watched", trusted=True)
    service.agent(
        "helper",
        service.script("helper", a_turn("Hello.")),
        mcp_servers=["watched"],
        tools=["code_execution"],
        **settings,
    )
    return service.call("POST", "/gateway-sessions", {"agent_id": "helper"}), log


def text_of(result: CallToolResult) -> str:
    """What the only block of a result says."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_official_client_lists_and_calls_the_tools_of_an_agent(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path / "home") as service:
        session, log = a_gateway_toolset(service)
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {session['token']}"}, timeout=60) as http,
            Client(streamable_http_client(session["url"], http_client=http), mode=mode) as client,
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert "code_execution" in names
            assert "mcp__watched__look" in names
            answer = await client.call_tool("mcp__watched__look", {"text": "here"})
            assert not answer.is_error
            assert text_of(answer) == "look says here"
            computed = await client.call_tool("code_execution", {"code": "6 * 7"})
            assert "42" in text_of(computed)
        assert log.read_text().count("called look") == 1
        audit = service.call("GET", "/audit-events?limit=50")["data"]
        calls = [entry for entry in audit if entry["action"] == "tool.executed"]
        assert {entry["tool"] for entry in calls} == {"mcp__watched__look", "code_execution"}
        assert {entry["details"]["gateway_session_id"] for entry in calls} == {session["id"]}
