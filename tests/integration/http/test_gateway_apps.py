"""MCP Apps through the gateway: whose apps a client reads, which tools it is shown, and what apps
may call."""

from typing import Any

import pytest

from application.audit.ports import AuditFilter
from application.mcp.contents import ContentMethod
from application.mcp.ports import ContentBlock, ContentKind, McpReply
from application.system.pages import PageRequest
from domain.json_value import JsonObject
from tests.builders import ORG
from tests.composition import MODEL
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool
from tests.integration.http.gateway_caller import Caller, Json, a_modern_request, opened
from tests.integration.http.service import Service

pytestmark = pytest.mark.requirement("X6")

URI = "ui://clock/app.html"
RENDERS: Json = {"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}}
LINKED: JsonObject = {"_meta": {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}}
FOR_APPS: JsonObject = {"_meta": {"ui": {"visibility": ["app"]}}}
FOR_MODELS: JsonObject = {"_meta": {"ui": {"visibility": ["model"]}}}


def says(text: str) -> McpReply:
    raw = {"content": [{"type": "text", "text": text}, {"type": "resource_link", "name": "app", "uri": URI}]}
    return McpReply(is_error=False, content=(ContentBlock(kind=ContentKind.TEXT, text=text),), raw=raw)


def a_clock(slug: str, **more: JsonObject) -> InMemoryMcpServer:
    """A server with an app for its tool `time`, a tool `tick` for the app only, and `wind` for
    models only."""
    tools = {"time": LINKED, "tick": FOR_APPS, "wind": FOR_MODELS, **more}
    page = {"uri": URI, "mimeType": "text/html;profile=mcp-app", "text": slug}
    return InMemoryMcpServer(
        tools={name: InMemoryTool(answer=says(f"{slug} {name}"), display=display) for name, display in tools.items()},
        contents={
            ContentMethod.RESOURCES: {"resources": [{"uri": URI, "name": "app"}]},
            ContentMethod.READ_RESOURCE: {"contents": [page]},
        },
    )


async def a_caller(service: Service, *slugs: str, names: str = "namespaced", **agent: object) -> Caller:
    for slug in slugs:
        service.connections.servers.setdefault(slug, a_clock(slug))
        await service.call("POST", "/v1/mcp-servers", json={"slug": slug, "kind": "custom", "command": slug})
    body = {"name": "toolbox", "model": MODEL, "mcp_servers": [*slugs], **agent}
    assert (await service.call("POST", "/v1/agents", json=body)).status_code == 201
    return await opened(service, agent_id="toolbox", names=names)


async def asked(caller: Caller, method: str, capabilities: Json = RENDERS, **params: object) -> dict[str, Any]:
    """The whole answer to a request of a client that renders apps."""
    message, headers = a_modern_request(method, params)
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities  # type: ignore[index]
    if "uri" in params:
        headers["mcp-name"] = str(params["uri"])
    return dict((await caller.send(message, headers=headers)).json())


async def called(caller: Caller, name: str, capabilities: Json = RENDERS) -> str:
    """The text of the result, or of the error."""
    answer = await asked(caller, "tools/call", capabilities, name=name, arguments={})
    return str(answer["error"]["message"] if "error" in answer else answer["result"]["content"][0]["text"])


async def listed(caller: Caller, capabilities: Json = RENDERS) -> dict[str, Any]:
    tools = (await asked(caller, "tools/list", capabilities))["result"]["tools"]
    return {tool["name"]: tool.get("_meta") for tool in tools}


async def origins(service: Service) -> dict[str, object]:
    """Of the audit entries, by tool."""
    page = await service.stores.audit.page(ORG, AuditFilter(), PageRequest(limit=100))
    return {entry.tool: entry.details.get("origin") for entry in page.items if entry.tool is not None}


async def test_servers_with_the_same_app_keep_its_scheme_and_each_one_is_read(service: Service) -> None:
    caller = await a_caller(service, "bells", "hands")
    tools = await listed(caller)
    for slug in ("bells", "hands"):
        shown = f"ui://{slug}/clock/app.html"
        assert tools[f"mcp__{slug}__time"] == {"ui": {"resourceUri": shown}, "ui/resourceUri": shown}
        read = (await asked(caller, "resources/read", uri=shown))["result"]["contents"]
        assert read == [{"uri": shown, "mimeType": "text/html;profile=mcp-app", "text": slug}]
        assert service.connections.asked[-1].params == {"uri": URI}
        answer = await asked(caller, "tools/call", name=f"mcp__{slug}__time", arguments={})
        assert answer["result"]["content"][1]["uri"] == shown
    uris = [one["uri"] for one in (await asked(caller, "resources/list"))["result"]["resources"]]
    assert uris == ["ui://bells/clock/app.html", "ui://hands/clock/app.html"]


async def test_a_session_of_original_names_has_the_server_s_own_links_but_only_to_apps(service: Service) -> None:
    service.connections.servers["bells"] = a_clock("bells", leak={"_meta": {"ui/resourceUri": "file:///x", "y": 1}})
    caller = await a_caller(service, "bells", names="original")
    tools = await listed(caller)
    assert (tools["time"], tools["leak"]) == (LINKED["_meta"], {"y": 1})
    assert (await asked(caller, "resources/read", uri=URI))["result"]["contents"][0]["uri"] == URI
    assert await called(caller, "tick") == "bells tick"
    assert await origins(service) == {"mcp__bells__resources": None, "mcp__bells__tick": "app"}


async def test_a_tool_for_apps_is_shown_to_clients_that_render_them_and_to_no_other(service: Service) -> None:
    caller = await a_caller(service, "bells")
    tick = "mcp__bells__tick"
    assert set(await listed(caller)) == {tick, "mcp__bells__time", "mcp__bells__wind"}
    assert set(await listed(caller, {})) == {"mcp__bells__time", "mcp__bells__wind"}
    assert "Unknown tool" in await called(caller, tick, {})
    assert await called(caller, tick) == "bells tick"
    shown = await service.call("GET", "/v1/tools?agent=toolbox")
    assert tick not in shown.text


async def test_an_app_calls_its_server_by_the_server_s_own_names_and_the_audit_says_so(service: Service) -> None:
    caller = await a_caller(service, "bells")
    assert await called(caller, "time") == "bells time"
    assert await origins(service) == {"mcp__bells__time": "app"}
    assert await called(caller, "mcp__bells__wind") == "bells wind"
    assert (await origins(service))["mcp__bells__wind"] is None
    assert "Unknown tool" in await called(caller, "wind")
    assert "Unknown tool" in await called(caller, "time", {})


async def test_a_name_that_apps_of_several_servers_use_is_refused_with_the_names_that_tell_them_apart(
    service: Service,
) -> None:
    caller = await a_caller(service, "bells", "hands")
    assert await called(caller, "time") == (
        "Tools of several MCP servers have this name: mcp__bells__time, mcp__hands__time."
    )
    assert not service.connections.calls
    assert await called(caller, "mcp__hands__tick") == "hands tick"


async def test_the_call_of_an_app_is_under_the_policy_of_the_tool(service: Service) -> None:
    policies = {"mcp__bells__time": {"decision": "deny"}, "mcp__bells__tick": {"max_calls": 1}}
    caller = await a_caller(service, "bells", tool_policies=policies)
    assert "policy" in await called(caller, "time")
    assert await called(caller, "tick") == "bells tick"
    assert "policy" in await called(caller, "tick")
    assert len(service.connections.calls) == 1
    assert await origins(service) == {"mcp__bells__time": "app", "mcp__bells__tick": "app"}


async def test_an_app_reads_apps_by_the_server_s_own_address_and_nothing_else(service: Service) -> None:
    caller = await a_caller(service, "bells")
    assert (await asked(caller, "resources/read", uri=URI))["result"]["contents"][0]["text"] == "bells"
    for uri in ("ui://clock/other.html", "file:///etc/passwd"):
        assert "error" in await asked(caller, "resources/read", uri=uri)
    assert len(service.connections.asked) == 1


async def test_an_app_whose_address_begins_with_a_slug_is_its_own_server_s(service: Service) -> None:
    caller = await a_caller(service, "clock")
    for uri in (URI, "ui://clock/clock/app.html"):
        assert (await asked(caller, "resources/read", uri=uri))["result"]["contents"][0]["text"] == "clock"
        assert service.connections.asked[-1].params == {"uri": URI}


async def test_an_app_s_address_is_not_read_as_that_of_another_server(service: Service) -> None:
    service.connections.servers["clock"] = InMemoryMcpServer(tools={"hour": InMemoryTool(answer=says("hour"))})
    caller = await a_caller(service, "bells", "clock")
    assert (await asked(caller, "resources/read", uri=URI))["result"]["contents"][0]["text"] == "bells"


async def test_an_address_that_two_servers_could_mean_is_refused(service: Service) -> None:
    linked: JsonObject = {"_meta": {"ui": {"resourceUri": "ui://app.html"}}}
    service.connections.servers["clock"] = a_clock("clock", time=linked)
    caller = await a_caller(service, "bells", "clock")
    assert "error" in await asked(caller, "resources/read", uri=URI)
    assert not service.connections.asked


async def test_both_generations_are_told_that_apps_are_passed_on(service: Service) -> None:
    caller = await a_caller(service, "bells")
    modern = (await asked(caller, "server/discover"))["result"]["capabilities"]["extensions"]
    hello: Any = await caller.legacy("initialize", {"protocolVersion": "2025-11-25", "capabilities": RENDERS})
    for extensions in (modern, hello["result"]["capabilities"]["extensions"]):
        assert extensions["io.modelcontextprotocol/ui"] == {}
