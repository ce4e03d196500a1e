"""Resources, prompts and completion of servers through the gateway: under which names, for whom,
and what is refused."""

from collections.abc import Mapping
from typing import Any

import pytest

from application.mcp.contents import ContentMethod
from application.mcp.ports import McpFailure, McpFailureKind
from domain.audit.event import AuditAction
from domain.ids import GatewaySessionId
from tests.builders import ORG
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, text_reply
from tests.integration.http.gateway_caller import Caller, Json, actions, an_agent, error_of, opened
from tests.integration.http.service import Service

URI = "file:///notes.txt"
SHOWN = f"mcp+files:{URI}"
CANARY = "canary-7f3a9b2c41"
CONTENTS: dict[ContentMethod, Json] = {
    ContentMethod.RESOURCES: {"resources": [{"uri": URI, "name": "notes", "_meta": {"dragoman/x": 1, "kept": 2}}]},
    ContentMethod.TEMPLATES: {"resourceTemplates": [{"uriTemplate": "file:///{path}", "name": "files"}]},
    ContentMethod.READ_RESOURCE: {
        "contents": [{"uri": URI, "text": "Buy\x07 milk"}],
        "ttlMs": 9,
        "resultType": "complete",
    },
    ContentMethod.PROMPTS: {"prompts": [{"name": "greet"}, {"name": "p" * 80}]},
    ContentMethod.GET_PROMPT: {"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}]},
    ContentMethod.COMPLETE: {"completion": {"values": ["paris"], "hasMore": False}},
}


class RefusedContents(dict[ContentMethod, Mapping[str, object]]):
    """Asking for any of them fails."""

    def __init__(self, contents: Mapping[ContentMethod, Json], failure: McpFailure) -> None:
        super().__init__(contents)
        self._failure = failure

    def __getitem__(self, key: ContentMethod) -> Mapping[str, object]:
        raise self._failure


def files_have(service: Service, contents: dict[ContentMethod, Json]) -> None:
    """The server `files` has one tool, and these contents."""
    tools = {"echo": InMemoryTool(answer=text_reply("hi"))}
    service.connections.servers["files"] = InMemoryMcpServer(tools=tools, contents=contents)


async def a_caller(service: Service, contents: dict[ContentMethod, Json] = CONTENTS, **settings: Any) -> Caller:
    files_have(service, contents)
    await an_agent(service, **settings)
    return await opened(service)


@pytest.mark.requirement("F5")
async def test_resources_are_listed_and_read_under_names_that_say_whose_they_are(service: Service) -> None:
    caller = await a_caller(service)
    listed = (await caller.legacy("resources/list"))["result"]
    assert listed == {"resources": [{"uri": SHOWN, "name": "notes", "_meta": {"kept": 2}}]}
    templates = (await caller.legacy("resources/templates/list"))["result"]
    assert templates == {"resourceTemplates": [{"uriTemplate": "mcp+files:file:///{path}", "name": "files"}]}
    read = (await caller.legacy("resources/read", {"uri": SHOWN}))["result"]
    assert read == {"contents": [{"uri": SHOWN, "text": "Buy milk"}]}
    assert service.connections.asked[-1].params == {"uri": URI}
    assert AuditAction.TOOL_EXECUTED in await actions(service)


@pytest.mark.requirement("F5")
async def test_a_session_of_original_names_has_the_server_s_own(service: Service) -> None:
    files_have(service, CONTENTS)
    await an_agent(service, tools=[])
    caller = await opened(service, agent_id="toolbox", names="original")
    assert (await caller.legacy("resources/list"))["result"]["resources"][0]["uri"] == URI  # type: ignore[index]
    assert (await caller.legacy("prompts/list"))["result"]["prompts"][0]["name"] == "greet"  # type: ignore[index]
    assert "result" in await caller.legacy("resources/read", {"uri": URI})


@pytest.mark.requirement("F5")
async def test_prompts_are_listed_and_got_also_where_a_name_had_to_be_cut(service: Service) -> None:
    caller = await a_caller(service)
    prompts = (await caller.legacy("prompts/list"))["result"]["prompts"]  # type: ignore[index]
    short, cut = [prompt["name"] for prompt in prompts]
    assert short == "mcp__files__greet"
    assert len(cut) == 64
    assert (await caller.legacy("prompts/get", {"name": short}))["result"]["messages"]  # type: ignore[index]
    assert service.connections.asked[-1].params["name"] == "greet"
    assert "result" in await caller.legacy("prompts/get", {"name": cut})
    assert service.connections.asked[-1].params["name"] == "p" * 80


@pytest.mark.requirement("F5")
async def test_completion_is_asked_of_the_server_whose_prompt_it_is(service: Service) -> None:
    caller = await a_caller(service)
    ref = {"type": "ref/prompt", "name": "mcp__files__greet"}
    asked: Json = {"ref": ref, "argument": {"name": "city", "value": "par"}}
    answer = await caller.legacy("completion/complete", asked)
    assert answer["result"] == {"completion": {"values": ["paris"], "hasMore": False}}
    assert service.connections.asked[-1].params["ref"] == {"type": "ref/prompt", "name": "greet"}


@pytest.mark.requirement("F5")
async def test_the_newer_generation_is_told_how_long_lists_and_contents_hold(service: Service) -> None:
    caller = await a_caller(service)
    listed = (await caller.modern("prompts/list")).json()["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    read = (await caller.modern("resources/read", {"uri": SHOWN}, mcp_name=SHOWN)).json()["result"]
    assert (read["ttlMs"], read["cacheScope"]) == (0, "private")


@pytest.mark.requirement("F5")
async def test_a_name_that_no_server_of_the_agent_has_is_unknown_in_each_generation_s_way(service: Service) -> None:
    caller = await a_caller(service)
    elsewhere = "mcp+other:file:///notes.txt"
    unknown = (await caller.legacy("resources/read", {"uri": elsewhere}))["error"]
    assert (unknown["code"], unknown["data"]["uri"]) == (-32002, elsewhere)  # type: ignore[index]
    response = await caller.modern("resources/read", {"uri": elsewhere}, mcp_name=elsewhere)
    assert error_of(response) == (200, -32602)
    assert (await caller.legacy("prompts/get", {"name": "greet"}))["error"]["code"] == -32602  # type: ignore[index]
    assert (await caller.legacy("prompts/get", {}))["error"]["code"] == -32602  # type: ignore[index]
    assert service.connections.asked == []


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    "settings",
    [
        {"tool_policies": {"mcp__files__*": {"decision": "deny"}}},
        {"tool_allowlist": ["mcp__files__echo"]},
    ],
    ids=["denied", "not on the allowlist"],
)
async def test_what_policy_or_an_allowlist_keeps_from_the_agent_is_not_there(
    service: Service, settings: dict[str, Any]
) -> None:
    caller = await a_caller(service, **settings)
    assert (await caller.legacy("resources/list"))["result"] == {"resources": []}
    assert (await caller.legacy("prompts/list"))["result"] == {"prompts": []}
    assert "error" in await caller.legacy("resources/read", {"uri": SHOWN})
    assert service.connections.asked == []


@pytest.mark.requirement("F5")
async def test_policy_decides_about_parameters_and_refusals_are_audited(service: Service) -> None:
    schema = {"properties": {"uri": {"not": {"pattern": "notes"}}}}
    caller = await a_caller(service, tool_policies={"mcp__files__resources": {"arguments_schema": schema}})
    refused = (await caller.legacy("resources/read", {"uri": SHOWN}))["error"]
    assert (refused["code"], refused["data"]["code"]) == (-32600, "content_denied")  # type: ignore[index]
    assert service.connections.asked == []
    assert AuditAction.TOOL_BLOCKED in await actions(service)


@pytest.mark.requirement("F5")
async def test_what_needs_an_approval_is_refused(service: Service) -> None:
    caller = await a_caller(service, tool_policies={"mcp__files__prompts": {"decision": "require_approval"}})
    refused = (await caller.legacy("prompts/get", {"name": "mcp__files__greet"}))["error"]
    assert refused["data"] == {"code": "content_denied"}  # type: ignore[index]
    assert service.connections.asked == []


@pytest.mark.requirement("C4", "F5")
async def test_a_canary_token_in_a_resource_ends_the_session(service: Service) -> None:
    leaky: dict[ContentMethod, Json] = {ContentMethod.READ_RESOURCE: {"contents": [{"uri": URI, "text": CANARY}]}}
    caller = await a_caller(service, leaky, canary_tokens=[{"id": "vault", "token": CANARY}])
    halted = await caller.legacy("resources/read", {"uri": SHOWN})
    assert CANARY not in str(halted)
    assert halted["error"]["data"]["code"] == "gateway_session_halted"  # type: ignore[index]
    assert AuditAction.SESSION_HALTED in await actions(service)
    assert (await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize("where", ["what is asked", "the answer"])
async def test_a_canary_token_in_a_completion_ends_the_session(service: Service, where: str) -> None:
    leaky: dict[ContentMethod, Json] = {**CONTENTS, ContentMethod.COMPLETE: {"completion": {"values": [CANARY]}}}
    contents = leaky if where == "the answer" else CONTENTS
    caller = await a_caller(service, contents, canary_tokens=[{"id": "vault", "token": CANARY}])
    ref = {"type": "ref/prompt", "name": "mcp__files__greet"}
    value = "par" if where == "the answer" else CANARY
    halted = await caller.legacy("completion/complete", {"ref": ref, "argument": {"name": "city", "value": value}})
    assert CANARY not in str(halted)
    assert halted["error"]["data"]["code"] == "gateway_session_halted"  # type: ignore[index]
    assert len(service.connections.asked) == (where == "the answer")
    [(call, _)] = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert CANARY not in str(call)
    assert AuditAction.SESSION_HALTED in await actions(service)
    assert (await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize("method", ["resources/read", "completion/complete"])
async def test_a_canary_token_in_a_server_s_refusal_ends_the_session(service: Service, method: str) -> None:
    said = McpFailure(McpFailureKind.SERVER_ERROR, f"There is no {CANARY}.", rpc_code=-32602)
    caller = await a_caller(service, canary_tokens=[{"id": "vault", "token": CANARY}])
    service.connections.servers["files"].contents = RefusedContents(CONTENTS, said)
    params: Json = {"uri": SHOWN}
    if method == "completion/complete":
        params = {"ref": {"type": "ref/resource", "uri": SHOWN}, "argument": {"name": "path", "value": "n"}}
    halted = await caller.legacy(method, params)
    assert CANARY not in str(halted)
    assert halted["error"]["data"]["code"] == "gateway_session_halted"  # type: ignore[index]
    assert AuditAction.SESSION_HALTED in await actions(service)


@pytest.mark.requirement("F5")
async def test_a_server_that_asks_gets_answers_of_people_only_and_only_where_its_setting_says_so(
    service: Service,
) -> None:
    asking: Json = {"resultType": "input_required", "inputRequests": {"who": {"method": "elicitation/create"}}}
    caller = await a_caller(service, {ContentMethod.GET_PROMPT: asking})
    got = (await caller.modern("prompts/get", {"name": "mcp__files__greet", "inputResponses": {"who": {}}})).json()
    assert "cannot be given here" in got["error"]["message"]
    assert "inputResponses" not in service.connections.asked[-1].params


@pytest.mark.requirement("F5")
async def test_a_server_without_such_contents_has_none(service: Service) -> None:
    caller = await a_caller(service, {})
    assert (await caller.legacy("resources/list"))["result"] == {"resources": []}
    assert (await caller.legacy("prompts/list"))["result"] == {"prompts": []}
