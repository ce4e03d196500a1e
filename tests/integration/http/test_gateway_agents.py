"""Agents as tools of the gateway: what a client starts by calling one, and what it is told."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any, cast

import pytest

from application.gateway.calls import send_call
from application.runs.ports import RunFilter
from application.system.pages import PageRequest
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolOutcome
from tests.builders import ORG
from tests.composition import MODEL
from tests.integration.http.gateway_caller import (
    HOST,
    LEGACY,
    Caller,
    Json,
    a_modern_request,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import Act, Conversation, Service, paths_of, problem_of, token_of

RESEARCHER = "agent__researcher"
ASKED: Json = {"input": "What is new?"}


async def saved(service: Service, name: str, **settings: object) -> Json:
    response = await service.call("POST", "/v1/agents", json={"name": name, "model": MODEL, **settings})
    assert response.status_code == 201, response.text
    return dict(response.json())


async def a_front(service: Service, **settings: object) -> Caller:
    """A session of an agent that lists the agent `researcher`, and has no other tools."""
    await saved(service, "researcher", description="Knows the library.")
    await saved(service, "front", agents=["researcher"], **settings)
    return await opened(service, agent_id="front")


async def runs_of(service: Service) -> list[Run]:
    """All runs, oldest first."""
    page = await service.stores.runs.page(ORG, RunFilter(), PageRequest(limit=50))
    return list(reversed(page.items))


async def called(caller: Caller, arguments: Json, *, meta: Json | None = None) -> dict[str, Any]:
    """The result of a call in the older generation."""
    params: Json = {"name": RESEARCHER, "arguments": arguments}
    if meta is not None:
        params["_meta"] = meta
    answer = await caller.legacy("tools/call", params)
    return cast("dict[str, Any]", answer["result"])


def text_of(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    return str(block["text"])


async def names(caller: Caller) -> list[str]:
    listed = cast("dict[str, Any]", (await caller.legacy("tools/list"))["result"])
    return [tool["name"] for tool in listed["tools"]]


async def outcomes(service: Service, caller: Caller) -> list[ToolOutcome | None]:
    calls = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    return [None if settlement is None else settlement.result.outcome for _, settlement in calls]


@pytest.mark.requirement("F5")
async def test_exactly_the_agents_that_an_agent_lists_are_tools_of_its_sessions(service: Service) -> None:
    caller = await a_front(service)
    await saved(service, "other")
    listed = cast("dict[str, Any]", (await caller.legacy("tools/list"))["result"])
    [tool] = listed["tools"]
    assert tool["name"] == RESEARCHER
    assert tool["description"].endswith("Knows the library.")
    assert set(tool["inputSchema"]["properties"]) == {"input", "run_id"}

    await an_agent(service)
    assert not [name for name in await names(await opened(service)) if name.startswith("agent__")]
    refused = await (await opened(service)).modern("tools/call", {"name": RESEARCHER, "arguments": ASKED})
    assert error_of(refused) == (200, -32602)
    assert await runs_of(service) == []


@pytest.mark.requirement("F5", "C7")
async def test_an_agent_that_is_disabled_is_no_tool_any_more(service: Service) -> None:
    caller = await a_front(service)
    assert await names(caller) == [RESEARCHER]
    response = await service.call("PATCH", "/v1/agents/researcher", json={"enabled": False})
    assert response.status_code == 200
    assert await names(caller) == []
    refused = await caller.modern("tools/call", {"name": RESEARCHER, "arguments": ASKED})
    assert error_of(refused) == (200, -32602)


@pytest.mark.requirement("F5")
async def test_an_agent_lists_only_agents_that_there_are(service: Service) -> None:
    await saved(service, "researcher")
    response = await service.call(
        "POST", "/v1/agents", json={"name": "front", "model": MODEL, "agents": ["researcher", "resarcher", "front"]}
    )
    problem = problem_of(response, 422, "agent_invalid")
    assert paths_of(problem) == ["agents.1"]
    assert "did you mean 'researcher'?" in response.text
    front = {"name": "front", "model": MODEL, "agents": ["researcher"]}
    response = await service.call("POST", "/v1/agents", json={**front, "independent_agents": ["front"]})
    assert paths_of(problem_of(response, 422, "agent_invalid")) == ["independent_agents.0"]
    saved_front = await saved(service, "front", agents=["researcher"], independent_agents=["researcher"])
    assert saved_front["independent_agents"] == ["researcher"]


@pytest.mark.requirement("F5")
async def test_a_call_of_an_agent_is_a_run_of_whoever_opened_the_session(service: Service) -> None:
    caller = await a_front(service)
    result = await called(caller, ASKED)
    [run] = await runs_of(service)
    assert (run.status, run.requested_by) == (RunStatus.COMPLETED, "key_admin")
    [(recorded, _)] = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    front = (await service.call("GET", "/v1/agents/front")).json()["id"]
    called_by = {
        "gateway_session_id": caller.session_id,
        "tool_call_id": recorded.id,
        "depth": 1,
        "agent_id": front,  # whose allowlist and policies hold for the run
    }
    assert run.metadata == {"called_by": called_by}
    assert (text_of(result), result["isError"]) == ("Done.", False)
    told = result["structuredContent"]
    assert (told["run_id"], told["status"], told["output"], told["pending"]) == (run.id, "completed", "Done.", [])
    assert told["usage"]["turns"] == 1
    assert await outcomes(service, caller) == [ToolOutcome.SUCCEEDED]

    modern = await caller.modern("tools/call", {"name": RESEARCHER, "arguments": ASKED})
    assert modern.json()["result"]["structuredContent"]["run_id"] != run.id
    events = (await service.call("GET", "/v1/audit-events?limit=50")).json()["data"]
    executed = [event for event in events if event["action"] == AuditAction.TOOL_EXECUTED.value]
    assert {(event["tool"], event["actor"]) for event in executed} == {(RESEARCHER, "key_admin")}


@pytest.mark.requirement("F5", "C2")
async def test_policy_and_allowlists_hold_for_agents_as_for_other_tools(service: Service) -> None:
    caller = await a_front(service, tool_policies={"agent__*": {"decision": "deny"}})
    assert await names(caller) == []
    denied = await called(caller, ASKED)
    assert denied["isError"]
    assert await outcomes(service, caller) == [ToolOutcome.BLOCKED]

    await service.call("PATCH", "/v1/agents/front", json={"tool_policies": {}, "tool_allowlist": ["mcp__*"]})
    hidden = await caller.modern("tools/call", {"name": RESEARCHER, "arguments": ASKED})
    assert error_of(hidden) == (200, -32602)

    once: Json = {RESEARCHER: {"max_calls": 1}}
    await service.call("PATCH", "/v1/agents/front", json={"tool_policies": once, "tool_allowlist": [RESEARCHER]})
    caller = await opened(service, agent_id="front")
    assert [(await called(caller, ASKED))["isError"] for _ in range(2)] == [False, True]
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5", "A9")
@pytest.mark.parametrize("arguments", [{}, {"input": "x", "run_id": "run_1"}, {"input": ""}, {"question": "x"}])
async def test_a_call_says_either_what_is_asked_or_which_run_is_meant(service: Service, arguments: Json) -> None:
    caller = await a_front(service)
    assert (await called(caller, arguments))["isError"]
    assert await runs_of(service) == []


@pytest.mark.requirement("F5", "C3")
async def test_a_call_whose_run_waits_for_an_approval_names_it_and_another_call_has_the_answer(
    service: Service,
) -> None:
    caller = await a_front(service)
    service.worker.act = Act.APPROVE
    waiting = await called(caller, ASKED)
    [run] = await runs_of(service)
    [approval] = (await service.call("GET", "/v1/approvals?state=pending")).json()["data"]
    told = waiting["structuredContent"]
    assert (told["run_id"], told["status"], waiting["isError"]) == (run.id, "requires_action", False)
    assert [use["approval_id"] for use in told["pending"]] == [approval["id"]]
    assert run.id in text_of(waiting)
    assert approval["id"] in text_of(waiting)

    again = await called(caller, {"run_id": run.id})
    assert again["structuredContent"]["status"] == "requires_action"
    service.worker.act = Act.FINISH
    response = await service.call(
        "POST", f"/v1/approvals/{approval['id']}", json={"decision": "deny"}, token=token_of(Role.OPERATOR)
    )
    assert response.status_code == 200, response.text
    answered = await called(caller, {"run_id": run.id})
    assert (text_of(answered), answered["structuredContent"]["status"]) == ("Done.", "completed")
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5", "C6")
async def test_the_run_of_another_session_or_agent_is_unknown(service: Service) -> None:
    caller = await a_front(service)
    run_id = (await called(caller, ASKED))["structuredContent"]["run_id"]
    other = await called(await opened(service, agent_id="front"), {"run_id": run_id})
    assert other["isError"]
    assert "Done." not in json.dumps(other)
    await saved(service, "writer")
    await service.call("PATCH", "/v1/agents/front", json={"agents": ["researcher", "writer"]})
    params: Json = {"name": "agent__writer", "arguments": {"run_id": run_id}}
    of_writer = cast("dict[str, Any]", (await caller.legacy("tools/call", params))["result"])
    assert of_writer["isError"]
    elsewhere = (await service.call("POST", "/v1/runs", json={"agent": "researcher", "input": "x"})).json()["id"]
    assert (await called(caller, {"run_id": elsewhere}))["isError"]


@pytest.mark.requirement("F5", "E3")
async def test_a_call_that_is_made_again_with_its_key_has_the_run_that_it_had(service: Service) -> None:
    caller = await a_front(service)
    key: Json = {"dragoman/idempotency-key": "call_1"}
    first, again = [await called(caller, ASKED, meta=key) for _ in range(2)]
    assert first["structuredContent"] == again["structuredContent"]
    other = await called(caller, {"input": "Something else"}, meta=key)
    assert other["isError"]
    assert len(await runs_of(service)) == 1
    await called(await opened(service, agent_id="front"), ASKED, meta=key)
    assert len(await runs_of(service)) == 2


@pytest.mark.requirement("F5")
async def test_agents_that_call_each_other_in_a_circle_are_stopped(service: Service) -> None:
    caller = await a_front(service)
    deep = await called(caller, ASKED, meta={"dragoman/agent-depth": "2"})
    [run] = await runs_of(service)
    assert not deep["isError"]
    assert cast(Json, run.metadata["called_by"])["depth"] == 3
    assert (await called(caller, ASKED, meta={"dragoman/agent-depth": "3"}))["isError"]
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5", "A7")
async def test_a_run_that_lasts_longer_than_policy_lets_a_call_last_is_cancelled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Storing and cancelling the run may take long: that is not to be what ends the call.
    monkeypatch.setattr(send_call, "ABANDON_AFTER_S", 60.0)
    caller = await a_front(service, tool_policies={RESEARCHER: {"timeout_s": 0.05}})
    service.worker.act = Act.REST
    result = await called(caller, ASKED)
    assert (result["isError"], result["structuredContent"]["status"]) == (True, "cancelled")
    [run] = await runs_of(service)
    assert run.status is RunStatus.CANCELLED


@pytest.mark.requirement("F5", "C4")
async def test_a_canary_token_in_the_question_ends_the_session_and_starts_nothing(service: Service) -> None:
    caller = await a_front(service, canary_tokens=[{"id": "door", "token": "violet-otter-42"}])
    answer = await caller.legacy("tools/call", {"name": RESEARCHER, "arguments": {"input": "say violet-otter-42"}})
    assert "error" in answer
    assert await runs_of(service) == []
    refused = await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert refused.status_code == 401


@pytest.mark.requirement("F5", "A12")
@pytest.mark.parametrize("is_modern", [True, False])
async def test_who_gives_a_call_up_cancels_its_run(service: Service, *, is_modern: bool) -> None:
    caller = await a_front(service)
    service.worker.act = Act.REST
    holding = await _held(service, caller, is_modern=is_modern)
    async with asyncio.timeout(60):
        run = await _only_run(service)
        if is_modern:
            holding.conversation.left.set()
        else:
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await caller.send(told, headers={"mcp-protocol-version": LEGACY})).status_code == 202
        await holding.task
        stopped = await _only_run(service)
        while stopped.status is not RunStatus.CANCELLED:
            await asyncio.sleep(0)
            stopped = await _only_run(service)
    assert stopped.id == run.id
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5", "E1")
async def test_a_client_of_the_older_generation_that_leaves_harms_nothing(service: Service) -> None:
    caller = await a_front(service)
    service.worker.act = Act.REST
    holding = await _held(service, caller, is_modern=False)
    async with asyncio.timeout(60):
        run = await _only_run(service)
        holding.conversation.left.set()
        service.worker.act = Act.FINISH
        await service.worker.submit(run.id)
        await holding.task
        settled = await outcomes(service, caller)
        while settled == [None]:
            await asyncio.sleep(0)
            settled = await outcomes(service, caller)
    assert settled == [ToolOutcome.SUCCEEDED]


@pytest.mark.requirement("F5", "B4")
async def test_a_client_that_wants_progress_is_told_of_turns_and_ends_with_the_answer(service: Service) -> None:
    caller = await a_front(service)
    service.worker.act = Act.REST
    holding = await _held(service, caller, is_modern=True, progress="p1")
    async with asyncio.timeout(60):
        run = await _only_run(service)
        service.worker.act = Act.FINISH
        await service.worker.submit(run.id)
        await holding.task
    messages = [
        json.loads(line.removeprefix("data: "))
        for line in b"".join(holding.conversation.chunks).decode().splitlines()
        if line.startswith("data: ")
    ]
    *told, answer = messages
    assert {message["method"] for message in told} == {"notifications/progress"}
    assert {message["params"]["progressToken"] for message in told} == {"p1"}
    assert [message["params"]["progress"] for message in told] == [float(n + 1) for n in range(len(told))]
    said = [message["params"]["message"] for message in told]
    assert said[0] == f"{run.id} started"
    assert "turn 1" in said
    assert answer["result"]["structuredContent"]["status"] == "completed"


class _Held:
    """A call under way."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.task = asyncio.create_task(conversation.hold())


async def _held(service: Service, caller: Caller, *, is_modern: bool, progress: str | None = None) -> _Held:
    params: Json = {"name": RESEARCHER, "arguments": ASKED}
    message: Json = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    headers: dict[str, str | None] = {"mcp-protocol-version": LEGACY}
    if is_modern:
        message, headers = a_modern_request("tools/call", params)
    if progress is not None:
        cast(Json, cast(Json, message["params"])["_meta"])["progressToken"] = progress

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(message).encode()

    accepted = {"accept": "application/json, text/event-stream"}
    said = {name: value for name, value in headers.items() if value is not None}
    return _Held(
        Conversation(
            service.app,
            "POST",
            "/mcp",
            headers={"host": HOST, "content-type": "application/json", **accepted, **said},
            token=caller.token or "",
            body=body(),
        )
    )


async def _only_run(service: Service) -> Run:
    """The one run, once its worker was told of it. A worker that is told later takes the run up
    after the test has changed what it does."""
    found = await runs_of(service)
    while not {run.id for run in found} & {*service.worker.submitted}:
        await asyncio.sleep(0)
        found = await runs_of(service)
    [run] = found
    return run
