"""Responses at the edge: what they wait for, which others they may follow, and which tools they are
given."""

from dataclasses import replace
from typing import Any

import pytest

from domain.identity.role import Role
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.runs.run import RunStatus
from domain.threads.thread import Quarantine
from tests.builders import ORG, START
from tests.composition import MODEL
from tests.contract.run_steps import claim, finish_step
from tests.integration.http.service import Act, Service, token_of

RESPONSES, CONVERSATIONS = "/openai/v1/responses", "/openai/v1/conversations"
FILES: dict[str, object] = {"slug": "files", "kind": "custom", "command": "files-server", "isolation": "shared"}

pytestmark = pytest.mark.requirement("X1")


@pytest.fixture(autouse=True)
async def agent(service: Service) -> None:
    await service.call("POST", "/v1/mcp-servers", json=FILES)
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL, "mcp_servers": ["files"]})


async def created(service: Service, **body: object) -> dict[str, Any]:
    answer = await service.call("POST", RESPONSES, json={"model": "guide", "input": "go", **body})
    assert answer.status_code == 200, answer.text
    response: dict[str, Any] = answer.json()
    return response


async def refused(service: Service, **body: object) -> tuple[int, str, str]:
    """The status, the code and the message."""
    answer = await service.call("POST", RESPONSES, json={"model": "guide", "input": "go", **body})
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["message"]


async def run_of(service: Service, response: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = (await service.call("GET", f"/v1/runs/run_{response['id'][5:31]}")).json()
    return run


def items_of(response: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [item for item in response["output"] if item["type"] == kind]


def outputs(response: dict[str, Any]) -> list[dict[str, object]]:
    calls = items_of(response, "function_call")
    return [{"type": "function_call_output", "call_id": call["call_id"], "output": "sent"} for call in calls]


@pytest.mark.requirement("C3")
async def test_outputs_beside_an_open_approval_are_kept_and_the_approval_is_named(service: Service) -> None:
    service.worker.act = Act.BOTH
    asked = await created(service)
    [request] = items_of(asked, "mcp_approval_request")
    for _ in range(2):
        status, code, message = await refused(service, input=outputs(asked))
        assert (status, code, request["id"] in message) == (400, "tool_call_pending", True)
    [pending] = (await run_of(service, asked))["pending"]
    service.worker.act = Act.FINISH
    await service.call("POST", f"/v1/approvals/{pending['approval_id']}", json={"decision": "deny"})
    answered = await created(service, input=outputs(asked))
    assert (answered["status"], answered["id"]) == ("completed", f"{asked['id']}_1")


@pytest.mark.requirement("C3")
async def test_a_denial_of_a_call_that_is_executed_is_refused(service: Service) -> None:
    service.worker.act = Act.APPROVE
    asked = await created(service)
    [request] = items_of(asked, "mcp_approval_request")
    answer = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    service.worker.act = Act.FINISH
    decided = await created(service, input=[answer])
    assert await created(service, input=[answer]) == decided
    status, code, message = await refused(service, input=[{**answer, "approve": False}])
    assert (status, code, "approved" in message) == (400, "tool_call_not_pending", True)


_SAID: JsonObject = {"role": "user", "content": "hello"}
_REASONING: JsonObject = {"type": "reasoning", "id": "rs_1", "summary": []}
_CALL: JsonObject = {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": "{}"}
_OUTPUT: JsonObject = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
_SERVER: JsonObject = {"type": "mcp", "server_label": "elsewhere"}
_IMAGE_OF_NOWHERE: JsonObject = {"role": "user", "content": [{"type": "input_image", "image_url": "ftp://x"}]}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"input": [_IMAGE_OF_NOWHERE]}, "input[0].content[0].image_url"),
        ({"input": [_REASONING, _CALL, _OUTPUT, _IMAGE_OF_NOWHERE]}, "input[3].content[0].image_url"),
        ({"input": [{"role": "narrator", "content": "go"}]}, "input[0].role"),
        ({"input": [_REASONING, {"role": "user", "content": [{"type": "video"}]}]}, "input[1].content[0].type"),
        ({"input": [_SAID, _CALL, {**_CALL, "arguments": "["}, _OUTPUT, _SAID]}, "input[2].arguments"),
        ({"input": [_SAID, {**_CALL, "name": "n" * 201}]}, "input[1].name"),
        ({"input": [_SAID, {"type": "function_call_output", "call_id": "", "output": "x"}]}, "input[1].call_id"),
        ({"input": [_SAID, {**_OUTPUT, "output": [{"type": "input_image"}]}]}, "input[1].output[0]"),
        ({"input": [{"role": "assistant", "content": "I end."}]}, "input"),
        ({"input": [_SAID, {"type": "computer_call"}]}, "input[1].type"),
        ({"tools": [{"type": "function", "name": "f"}, {"type": "function"}]}, "tools[1].name"),
        ({"tools": [_SERVER, {"type": "web_search"}]}, "tools[1].type"),
        ({"tools": [{"type": "function", "name": "f"}, _SERVER]}, "tools[1].server_label"),
        ({"reasoning": {"effort": "endless"}}, "reasoning.effort"),
        ({"temperature": 3}, "temperature"),
        ({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 1}}}}, "text.format.schema"),
    ],
)
async def test_a_refusal_names_the_parameter_of_the_protocol(
    service: Service, body: dict[str, object], param: str
) -> None:
    answer = await service.call("POST", RESPONSES, json={"model": "guide", "input": "go", **body})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize("query", ["stream=true&starting_after=-5", "stream=maybe"])
async def test_a_wrong_query_is_a_wrong_request(service: Service, query: str) -> None:
    asked = await created(service)
    answer = await service.call("GET", f"{RESPONSES}/{asked['id']}?{query}")
    name = query.rpartition("&")[2].partition("=")[0]
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, name)


async def test_what_is_missing_is_named_as_the_client_names_it(service: Service) -> None:
    none, nothing = f"resp_{'0' * 26}", f"conv_{'0' * 26}"
    for path, word, identifier in (
        (f"{RESPONSES}/{none}", "response", none),
        (f"{CONVERSATIONS}/{nothing}", "conversation", nothing),
        (f"{CONVERSATIONS}/{nothing}/items", "conversation", nothing),
        (f"{CONVERSATIONS}/{nothing}/items/msg_1", "conversation", nothing),
    ):
        error = (await service.call("GET", path)).json()["error"]
        assert (error["code"], error["message"]) == (f"{word}_not_found", f"There is no {word} '{identifier}'.")
    assert await refused(service, previous_response_id=none) == (
        404,
        "response_not_found",
        f"There is no response '{none}'.",
    )
    status, code, message = await refused(service, conversation=nothing)
    assert (status, code, nothing in message) == (404, "conversation_not_found", True)


async def test_who_may_not_delete_a_response_is_told_so_first(service: Service) -> None:
    conversation = (await service.call("POST", CONVERSATIONS, json={})).json()["id"]
    asked = await created(service, conversation=conversation)
    path = f"{RESPONSES}/{asked['id']}"
    assert (await service.call("DELETE", path, token=token_of(Role.VIEWER))).status_code == 403
    assert (await service.call("DELETE", path)).status_code == 409


async def test_a_response_in_the_background_is_stored(service: Service) -> None:
    status, code, message = await refused(service, background=True, store=False)
    assert (status, code, "store" in message) == (400, "unsupported_parameter", True)
    assert not service.worker.submitted


@pytest.mark.parametrize(("act", "named"), [(Act.ASK, "call_"), (Act.APPROVE, "mcpr_"), (Act.ELICIT, "question")])
async def test_a_conversation_takes_no_input_while_its_newest_response_waits(
    service: Service, act: Act, named: str
) -> None:
    conversation = (await service.call("POST", CONVERSATIONS, json={})).json()["id"]
    service.worker.act = act
    asked = await created(service, conversation=conversation)
    status, code, message = await refused(service, conversation=conversation, background=True)
    assert (status, code, named in message) == (400, "tool_call_pending", True)
    assert (await run_of(service, asked))["status"] == "requires_action"


async def test_a_branch_begins_at_the_last_response_of_a_run_that_has_ended(service: Service) -> None:
    service.worker.act = Act.ASK
    asked = await created(service)
    answered = await created(service, input=outputs(asked))
    service.worker.act = Act.REST
    later = await created(service, previous_response_id=answered["id"], background=True)
    newest = await created(service, previous_response_id=later["id"], background=True)
    for earlier in (asked, later):
        status, code, _ = await refused(service, previous_response_id=earlier["id"], background=True)
        assert (status, code) == (409, "response_not_last")
    branch = await created(service, previous_response_id=answered["id"], background=True)
    threads = [(await run_of(service, response))["thread_id"] for response in (asked, newest, branch)]
    assert threads[0] == threads[1] != threads[2]
    messages = (await service.call("GET", f"/v1/threads/{threads[2]}/messages")).json()["data"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.requirement("C4")
async def test_messages_of_a_thread_in_quarantine_are_copied_to_no_other(service: Service) -> None:
    first = await created(service)
    service.worker.act = Act.REST
    second = await created(service, previous_response_id=first["id"], background=True)
    claimed = await claim(service.stores, RunId((await run_of(service, second))["id"]))
    quarantine = Quarantine(run_id=claimed.run.id, canary_id="can_1", at=START)
    halted = replace(finish_step(claimed.run, RunStatus.HALTED), quarantine=quarantine)
    await service.stores.journal.commit(claimed.lease, halted)
    for response in (first, second):
        status, code, _ = await refused(service, previous_response_id=response["id"], background=True)
        assert (status, code) == (409, "thread_quarantined")


@pytest.mark.parametrize(
    ("names", "allowed"),
    [(["*"], []), (["echo", "ech?"], ["mcp__files__echo"]), ([], []), (None, None)],
)
async def test_allowed_tools_are_names_and_no_patterns(
    service: Service, names: list[str] | None, allowed: list[str] | None
) -> None:
    response = await created(service, tools=[{"type": "mcp", "server_label": "files", "allowed_tools": names}])
    run = await service.stores.runs.get(ORG, RunId((await run_of(service, response))["id"]))
    assert run is not None
    assert (None if run.tool_allowlist is None else list(run.tool_allowlist)) == allowed
