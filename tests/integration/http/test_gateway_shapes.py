"""What the gateway passes on of tools and results as their server says it, and what it keeps to
itself."""

from typing import Any

import pytest

from application.mcp.contents import ContentMethod
from application.mcp.ports import ContentBlock, ContentKind, McpReply
from tests.doubles.mcp_connections import Answer, InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.gateway_caller import ECHO, Caller, Json, a_modern_request, an_agent, error_of, opened
from tests.integration.http.service import Service

URI = "file:///notes.txt"
SHOWN = f"mcp+files:{URI}"
ICON = {"src": "https://example.com/echo.png", "mimeType": "image/png"}
ROUTED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "size": {"type": "integer", "x-mcp-header": "Size"},
    },
}


async def a_caller(service: Service, answer: Answer, contents: Any = None, **tool: Any) -> Caller:
    """A client of an agent whose server has the tool `echo` that is so."""
    tools = {"echo": InMemoryTool(answer=answer, **tool)}
    service.connections.servers["files"] = InMemoryMcpServer(tools=tools, contents=contents or {})
    await an_agent(service)
    return await opened(service)


def a_reply(*blocks: Json, **more: object) -> McpReply:
    """A reply with these blocks on the wire."""
    text = ContentBlock(kind=ContentKind.TEXT, text="hi")
    return McpReply(is_error=False, content=(text,), raw={"content": list(blocks), **more})


@pytest.mark.requirement("F5")
async def test_what_people_see_of_a_tool_is_passed_on_and_what_is_for_one_hop_is_not(service: Service) -> None:
    meta: Json = {
        "com.example/colour": "red",
        "io.modelcontextprotocol/x": 1,
        "tools.mcp.com/x": 1,
        "dragoman/x": 1,
        "progressToken": 1,
    }
    display: Any = {
        "title": "Echo",
        "icons": [ICON],
        "annotations": {"title": "Echoes", "openWorldHint": False},
        "_meta": meta,
    }
    caller = await a_caller(
        service,
        text_reply("hi"),
        description="Says it again.",
        read_only_hint=True,
        idempotent_hint=True,
        destructive_hint=False,
        display=display,
    )
    listed: Any = (await caller.legacy("tools/list"))["result"]
    assert listed["tools"] == [
        {
            "name": ECHO,
            "title": "Echo",
            "description": "Says it again.",
            "icons": [ICON],
            "inputSchema": {"type": "object"},
            "annotations": {
                "title": "Echoes",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "_meta": {"com.example/colour": "red"},
        }
    ]


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("names", ["namespaced", "original"])
async def test_a_resource_that_a_result_names_can_be_read_by_that_name(service: Service, names: str) -> None:
    link: Json = {"type": "resource_link", "uri": URI, "name": "notes"}
    embedded: Json = {"uri": URI, "text": "Buy milk"}
    reply = a_reply(link, {"type": "resource", "resource": embedded})
    said = {"role": "user", "content": {"type": "resource", "resource": embedded}}
    contents: dict[ContentMethod, Json] = {
        ContentMethod.READ_RESOURCE: {"contents": [embedded]},
        ContentMethod.GET_PROMPT: {"messages": [said, {"role": "user", "content": {"type": "text", "text": URI}}]},
    }
    caller = await a_caller(service, reply, contents)
    await service.call("PATCH", "/v1/agents/toolbox", json={"tools": []})
    caller = await opened(service, agent_id="toolbox", names=names)
    original = names == "original"

    result: Any = (await caller.legacy("tools/call", {"name": "echo" if original else ECHO}))["result"]
    uris = [result["content"][0]["uri"], result["content"][1]["resource"]["uri"]]
    prompt = "greet" if original else "mcp__files__greet"
    messages: Any = (await caller.legacy("prompts/get", {"name": prompt}))["result"]
    uris.append(messages["messages"][0]["content"]["resource"]["uri"])
    assert uris == [URI if original else SHOWN] * 3
    assert messages["messages"][1]["content"]["text"] == URI
    read: Any = (await caller.legacy("resources/read", {"uri": uris[0]}))["result"]
    assert read["contents"] == [{"uri": uris[0], "text": "Buy milk"}]


def a_routed_call(arguments: Json, **headers: str) -> tuple[Json, dict[str, str | None]]:
    message, fitting = a_modern_request("tools/call", {"name": ECHO, "arguments": arguments})
    return message, {**fitting, **{f"Mcp-Param-{name}": value for name, value in headers.items()}}


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({}, {}),
        ({"region": "north"}, {"Region": "north"}),
        ({"region": "nörd"}, {"Region": "=?base64?bsO2cmQ=?="}),
        ({"region": "north", "size": 42}, {"region": "north", "Size": "42.0"}),
        ({"region": "north"}, {"Region": "north", "Unknown": "whatever"}),
    ],
)
async def test_a_call_whose_headers_repeat_its_arguments_is_made(
    service: Service, arguments: Json, headers: dict[str, str]
) -> None:
    caller = await a_caller(service, text_reply("hi"), input_schema=ROUTED)
    message, sent = a_routed_call(arguments, **headers)
    assert (await caller.send(message, headers=sent)).json()["result"]["isError"] is False


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("arguments", "headers"),
    [
        ({"region": "north"}, {}),
        ({"region": "north"}, {"Region": "south"}),
        ({}, {"Region": "north"}),
        ({"region": None}, {"Region": "north"}),
        ({"region": "nörd"}, {"Region": "=?base64?bsO2cmQ?="}),
        ({"region": "nörd"}, {"Region": "=?base64?/w==?="}),
        ({"size": 42}, {"Size": "42.5"}),
        ({"size": 42}, {"Size": "9" * 5_000}),
    ],
)
async def test_a_call_whose_headers_say_something_else_is_refused_before_anything_is_done(
    service: Service, arguments: Json, headers: dict[str, str]
) -> None:
    caller = await a_caller(service, text_reply("hi"), input_schema=ROUTED)
    message, sent = a_routed_call(arguments, **headers)
    assert error_of(await caller.send(message, headers=sent)) == (400, -32020)
    assert not service.connections.calls


@pytest.mark.requirement("F5")
async def test_clients_of_the_older_generation_have_no_such_headers(service: Service) -> None:
    caller = await a_caller(service, text_reply("hi"), input_schema=ROUTED)
    answer: Any = await caller.legacy("tools/call", {"name": ECHO, "arguments": {"region": "north"}})
    assert answer["result"]["isError"] is False
