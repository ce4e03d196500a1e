"""A thousand tools behind the gateway: the official client finds one and calls it, under the policy
of listed tools."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.e2e.service import ISOLATED_PYTHON, SERVERS, Json, Service, a_turn, serving
from tests.e2e.test_gateway import text_of

PARCEL = "mcp__large__find_parcel_harz"
POLICIES = {
    "mcp__large__find_ticket_*": {"decision": "deny"},
    "mcp__large__find_visitor_alps": {"decision": "require_approval"},
    "mcp__large__find_sensor_alps": {"max_calls": 1},
}
ALLOWED = ["mcp__large__find_*", "mcp__large__*_recipe_*", "code_execution"]


def a_session(service: Service, **settings: object) -> Json:
    service.server("large", *ISOLATED_PYTHON, str(SERVERS / "large_server.py"))
    agent = {"mcp_servers": ["large"], "tools": ["code_execution"], **settings}
    service.agent("helper", service.script("helper", a_turn("Hello.")), **agent)
    return service.call("POST", "/gateway-sessions", {"agent_id": "helper"})


@asynccontextmanager
async def client_of(session: Json, query: str = "", mode: str = "auto") -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {session['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{session['url']}{query}", http_client=http), mode=mode) as client,
    ):
        yield client


async def found(client: Client, query: str) -> list[str]:
    text = text_of(await client.call_tool("search_tools", {"query": query}))
    return [] if text.startswith("No tool fits") else [one["name"] for one in json.loads(text)["tools"]]


@pytest.mark.requirement("X7")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_finds_one_of_a_thousand_tools_and_calls_it(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path / "home", DRAGOMAN_GATEWAY_TOOL_SEARCH_THRESHOLD="100") as service:
        session = a_session(service)
        async with client_of(session, mode=mode) as client:
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert listed == ["code_execution", "search_tools", "call_tool"]
            assert (await found(client, "find a parcel in Harz"))[0] == PARCEL
            assert (await found(client, "desk review-eifel"))[0] == "mcp__large__review_recipe_eifel"
            answer = await client.call_tool("call_tool", {"name": PARCEL, "arguments": {"text": "here"}})
            assert text_of(answer) == "find_parcel_harz says here"
            wrong = await client.call_tool("call_tool", {"name": PARCEL, "arguments": {"text": 7}})
            assert wrong.is_error
        async with client_of(session, "?tool_search=never", mode) as client:
            page = await client.list_tools()
            assert (len(page.tools), page.next_cursor is not None) == (500, True)
        audited = service.call("GET", f"/audit-events?tool={PARCEL}")["data"]
        assert sorted(entry["action"] for entry in audited) == ["tool.executed", "tool.failed"]
        searched = service.call("GET", "/audit-events?tool=search_tools")["data"]
        assert {entry["details"]["gateway_session_id"] for entry in searched} == {session["id"]}


@pytest.mark.requirement("X7", "C2", "C3")
async def test_policy_holds_for_found_tools_as_for_listed_ones(tmp_path: Path) -> None:
    with serving(tmp_path / "home") as service:
        session = a_session(service, tool_policies=POLICIES, tool_allowlist=ALLOWED)
        async with client_of(session, "?tool_search=always", "legacy") as client:
            assert [tool.name for tool in (await client.list_tools()).tools][1:] == ["search_tools", "call_tool"]

            assert not [name for name in await found(client, "find ticket alps") if "ticket" in name]
            denied = await client.call_tool("call_tool", {"name": "mcp__large__find_ticket_alps"})
            assert denied.is_error

            assert not [name for name in await found(client, "print invoice alps") if "print_invoice" in name]
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("call_tool", {"name": "mcp__large__print_invoice_alps"})

            once = {"name": "mcp__large__find_sensor_alps", "arguments": {}}
            assert not (await client.call_tool("call_tool", once)).is_error
            assert (await client.call_tool("call_tool", once)).is_error

            asking = {"name": "mcp__large__find_visitor_alps", "arguments": {"text": "Ann"}}
            waiting = await client.call_tool("call_tool", asking)
            (approval,) = service.call("GET", "/approvals?state=pending")["data"]
            assert approval["id"] in text_of(waiting)
            assert (approval["tool"], approval["arguments"]) == (asking["name"], asking["arguments"])
            service.call("POST", f"/approvals/{approval['id']}", {"decision": "approve"})
            assert text_of(await client.call_tool("call_tool", asking)) == "find_visitor_alps says Ann"
