"""Agents called as tasks, in both generations: what a client is told of a run that it does not wait
for."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, cast

import pytest

from domain.gateway.call import GatewaySettlement
from domain.ids import GatewaySessionId, RunId
from domain.runs.run import RunStatus
from domain.tools.result import ToolOutcome, ToolResult
from tests.builders import ORG, after, an_audit_event
from tests.contract.run_steps import claim, finish_step, reply_step
from tests.integration.http.gateway_caller import (
    ECHO,
    HOST,
    LEGACY,
    Caller,
    Json,
    a_modern_request,
    an_agent,
    error_of,
    opened,
)
from tests.integration.http.service import Act, Conversation, Service
from tests.integration.http.test_gateway_agents import ASKED, RESEARCHER, a_front, runs_of
from tests.integration.http.test_gateway_approvals import decided, pending

CALL: Json = {"name": RESEARCHER, "arguments": ASKED}
AS_TASK: Json = {**CALL, "task": {"ttl": 60_000}}
NEEDS_APPROVAL: Json = {RESEARCHER: {"decision": "require_approval"}}
WAITING, DONE = "working", "completed"


async def asked(caller: Caller, method: str, params: Json) -> dict[str, Any]:
    """The result of a request of 2025-11-25."""
    answer = await caller.legacy(method, params)
    assert "result" in answer, answer
    return cast("dict[str, Any]", answer["result"])


async def asked_in_vain(caller: Caller, method: str, params: Json) -> int:
    """The code of its error."""
    answer = await caller.legacy(method, params)
    return cast(int, cast(Json, answer["error"])["code"])


async def modern(caller: Caller, method: str, params: Json, *, takes_tasks: bool = True) -> dict[str, Any]:
    """The whole answer to a request of 2026-07-28."""
    message, headers = a_modern_request(method, params)
    meta = cast(Json, cast(Json, message["params"])["_meta"])
    if takes_tasks:
        extensions: Json = {"io.modelcontextprotocol/tasks": {}}
        meta["io.modelcontextprotocol/clientCapabilities"] = {"extensions": extensions}
    if "taskId" in params:
        headers["mcp-name"] = str(params["taskId"])
    return cast("dict[str, Any]", (await caller.send(message, headers=headers)).json())


async def begun(service: Service, caller: Caller) -> tuple[dict[str, Any], RunId]:
    """A task of 2025-11-25 whose run nobody has taken up, and the run."""
    service.worker.act = Act.REST
    task = (await asked(caller, "tools/call", AS_TASK))["task"]
    *_, run = await runs_of(service)
    return task, run.id


async def finished(service: Service, run_id: RunId) -> None:
    service.worker.act = Act.FINISH
    await service.worker.submit(run_id)


async def ended_with(service: Service, run_id: RunId, text: str, status: RunStatus = RunStatus.COMPLETED) -> None:
    """A worker brings the run to that end."""
    claimed = await claim(service.stores, run_id)
    reply = reply_step(claimed.run, text=text)
    await service.stores.journal.commit(claimed.lease, reply)
    end = finish_step(reply.run, status)
    await service.stores.journal.commit(claimed.lease, replace(end, run=replace(end.run, output=text or None)))


@pytest.mark.requirement("F5")
async def test_tasks_are_declared_where_they_are_known(service: Service) -> None:
    caller = await a_front(service)
    declared = (await asked(caller, "initialize", {"protocolVersion": LEGACY}))["capabilities"]["tasks"]
    assert declared == {"cancel": {}, "requests": {"tools": {"call": {}}}}
    older = await caller.legacy("initialize", {"protocolVersion": "2025-06-18"}, version="2025-06-18")
    assert "tasks" not in cast("dict[str, Any]", older["result"])["capabilities"]
    [tool] = (await asked(caller, "tools/list", {}))["tools"]
    assert tool["execution"] == {"taskSupport": "optional"}
    listed = await caller.legacy("tools/list", {}, version="2025-06-18")
    assert "execution" not in cast("dict[str, Any]", listed["result"])["tools"][0]
    found = (await modern(caller, "server/discover", {}))["result"]
    assert found["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"] == {}


@pytest.mark.requirement("F5", "E1")
async def test_a_task_of_the_older_generation_is_begun_polled_and_its_result_fetched(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    assert (task["status"], task["pollInterval"] > 0, task["ttl"] > 0) == (WAITING, True, True)
    working = await asked(caller, "tasks/get", {"taskId": task["taskId"]})
    assert (working["taskId"], working["status"], working["createdAt"]) == (task["taskId"], WAITING, task["createdAt"])
    assert run_id in working["statusMessage"]
    calls = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert [settled and settled.result.outcome for _, settled in calls] == [ToolOutcome.SUCCEEDED]

    await finished(service, run_id)
    assert (await asked(caller, "tasks/get", {"taskId": task["taskId"]}))["status"] == DONE
    result = await asked(caller, "tasks/result", {"taskId": task["taskId"]})
    assert (result["content"][0]["text"], result["isError"]) == ("Done.", False)
    assert result["structuredContent"]["run_id"] == run_id
    assert result["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": task["taskId"]}}
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5")
async def test_a_result_is_waited_for_and_what_is_told_meanwhile_is_the_task(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    message = {"jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": {"taskId": task["taskId"]}}

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(message).encode()

    headers = {"host": HOST, "content-type": "application/json", "mcp-protocol-version": LEGACY}
    accepted = {"accept": "application/json, text/event-stream"}
    conversation = Conversation(
        service.app, "POST", "/mcp", headers={**headers, **accepted}, token=caller.token or "", body=body()
    )
    holding = asyncio.create_task(conversation.hold())
    async with asyncio.timeout(60):
        await conversation.received(1)
        await finished(service, run_id)
        await holding
    said = b"".join(conversation.chunks).decode().splitlines()
    first, *_, answer = [json.loads(line.removeprefix("data: ")) for line in said if line.startswith("data: ")]
    assert first["method"] == "notifications/tasks/status"
    assert (first["params"]["taskId"], first["params"]["status"]) == (task["taskId"], WAITING)
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (9, "Done.")


@pytest.mark.requirement("C6", "F5")
async def test_who_waits_for_a_result_is_not_given_it_once_the_session_was_revoked(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    message = {"jsonrpc": "2.0", "id": 9, "method": "tasks/result", "params": {"taskId": task["taskId"]}}

    async def body() -> AsyncGenerator[bytes, None]:
        yield json.dumps(message).encode()

    headers = {"host": HOST, "content-type": "application/json", "mcp-protocol-version": LEGACY}
    accepted = {"accept": "application/json, text/event-stream"}
    conversation = Conversation(
        service.app, "POST", "/mcp", headers={**headers, **accepted}, token=caller.token or "", body=body()
    )
    holding = asyncio.create_task(conversation.hold())
    async with asyncio.timeout(60):
        await conversation.received(1)
        revoked = await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")
        assert revoked.status_code == 204
        await finished(service, run_id)
        await holding
    *_, last = [line for line in b"".join(conversation.chunks).decode().splitlines() if line.startswith("data: ")]
    assert json.loads(last.removeprefix("data: "))["error"]["data"] == {"code": "task_not_found"}


@pytest.mark.requirement("F5")
async def test_only_agents_are_called_as_tasks_and_only_in_versions_that_have_them(service: Service) -> None:
    await an_agent(service)
    caller = await opened(service)
    assert await asked_in_vain(caller, "tools/call", {"name": ECHO, "arguments": {}, "task": {}}) == -32601
    front = await a_front(service)
    older = await front.legacy("tools/call", AS_TASK, version="2025-06-18")
    assert cast("dict[str, Any]", older["result"])["content"][0]["text"] == "Done."
    assert await asked_in_vain(front, "tools/call", {**CALL, "task": 5}) == -32602
    refused = await asked_in_vain(front, "tools/call", {**AS_TASK, "arguments": {}})
    assert refused == -32600
    assert len(await runs_of(service)) == 1


@pytest.mark.requirement("F5", "C6")
async def test_a_task_is_unknown_to_every_session_but_its_own(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    other = await opened(service, agent_id="front")
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        for task_id in (task["taskId"], "gAAAAA", run_id, ""):
            teller = other if task_id == task["taskId"] else caller
            assert await asked_in_vain(teller, method, {"taskId": task_id}) == -32602
    assert await asked_in_vain(caller, "tasks/get", {}) == -32602
    [run] = await runs_of(service)
    assert run.status is RunStatus.QUEUED


@pytest.mark.requirement("F5", "A12")
async def test_a_cancelled_task_is_a_cancelled_run_and_cannot_be_cancelled_again(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    named: Json = {"taskId": task["taskId"]}
    assert (await asked(caller, "tasks/cancel", named))["status"] == "cancelled"
    [run] = await runs_of(service)
    assert (run.id, run.status) == (run_id, RunStatus.CANCELLED)
    assert await asked_in_vain(caller, "tasks/cancel", named) == -32602
    assert (await asked(caller, "tasks/result", named))["isError"]
    again = await modern(caller, "tasks/cancel", named)
    assert again["result"] == {"resultType": "complete"}


@pytest.mark.requirement("F5", "E1")
async def test_a_client_of_the_newer_generation_that_takes_tasks_is_given_one(service: Service) -> None:
    caller = await a_front(service)
    service.worker.act = Act.REST
    created = (await modern(caller, "tools/call", CALL))["result"]
    assert (created["resultType"], created["status"]) == ("task", WAITING)
    assert {"ttl", "pollInterval", "task", "result"}.isdisjoint(created)
    named: Json = {"taskId": created["taskId"]}
    working = (await modern(caller, "tasks/get", named))["result"]
    assert (working["resultType"], working["status"]) == ("complete", WAITING)
    assert (await modern(caller, "tasks/update", {**named, "inputResponses": {}}))["result"] == {
        "resultType": "complete"
    }
    [run] = await runs_of(service)
    await finished(service, run.id)
    done = (await modern(caller, "tasks/get", named))["result"]
    assert (done["status"], done["result"]["content"][0]["text"]) == (DONE, "Done.")
    assert "_meta" not in done["result"]

    service.worker.act = Act.FINISH
    waited = (await modern(caller, "tools/call", CALL, takes_tasks=False))["result"]
    assert (waited["resultType"], waited["content"][0]["text"]) == ("complete", "Done.")


@pytest.mark.requirement("F5")
async def test_methods_of_tasks_are_those_of_the_generation_and_for_clients_that_declare_them(service: Service) -> None:
    caller = await a_front(service)
    service.worker.act = Act.REST
    named: Json = {"taskId": (await modern(caller, "tools/call", CALL))["result"]["taskId"]}
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        refused = (await modern(caller, method, named, takes_tasks=False))["error"]
        assert refused["code"] == -32021
        assert refused["data"] == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    for method in ("tasks/result", "tasks/list"):
        assert error_of(await caller.modern(method, named)) == (404, -32601)
    assert await asked_in_vain(caller, "tasks/list", {}) == -32601
    message, headers = a_modern_request("tasks/get", named)
    mismatched = await caller.send(message, headers={**headers, "mcp-name": "another"})
    assert error_of(mismatched) == (400, -32020)


@pytest.mark.requirement("F5", "A5")
async def test_a_run_that_fails_is_a_failed_task_or_a_result_that_says_so(service: Service) -> None:
    caller = await a_front(service)
    task, run_id = await begun(service, caller)
    await ended_with(service, run_id, "", RunStatus.FAILED)
    named: Json = {"taskId": task["taskId"]}
    assert (await asked(caller, "tasks/get", named))["status"] == "failed"
    result = await asked(caller, "tasks/result", named)
    assert result["isError"]
    assert "The model does not answer." in result["content"][0]["text"]
    newer = (await modern(caller, "tasks/get", named))["result"]
    assert (newer["status"], newer["result"]["isError"]) == (DONE, True)


@pytest.mark.requirement("F5", "C3")
async def test_a_task_waits_for_its_approval_and_calls_its_agent_once(service: Service) -> None:
    caller = await a_front(service, tool_policies=NEEDS_APPROVAL)
    created = (await modern(caller, "tools/call", CALL))["result"]
    assert (created["resultType"], created["status"]) == ("task", WAITING)
    named: Json = {"taskId": created["taskId"]}
    [approval] = await pending(service)
    waiting = (await modern(caller, "tasks/get", named))["result"]
    assert approval["id"] in waiting["statusMessage"]
    assert (await pending(service), await runs_of(service)) == ([approval], [])

    service.worker.act = Act.REST
    await decided(service, approval["id"])
    for _ in range(2):
        assert (await modern(caller, "tasks/get", named))["result"]["status"] == WAITING
    [run] = await runs_of(service)
    assert await pending(service) == []
    await finished(service, run.id)
    done = (await modern(caller, "tasks/get", named))["result"]
    assert (done["status"], done["result"]["structuredContent"]["run_id"]) == (DONE, run.id)
    calls = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert [settled and settled.result.outcome for _, settled in calls] == [ToolOutcome.SUCCEEDED]


@pytest.mark.requirement("F5", "C3")
async def test_a_task_whose_agent_another_process_is_about_to_call_is_at_work_and_not_withdrawn(
    service: Service,
) -> None:
    caller = await a_front(service, tool_policies=NEEDS_APPROVAL)
    named: Json = {"taskId": (await modern(caller, "tools/call", CALL))["result"]["taskId"]}
    [approval] = await pending(service)
    await decided(service, approval["id"])
    session_id = GatewaySessionId(caller.session_id)
    [waiting] = await service.stores.gateway_approvals.asked(ORG, session_id, RESEARCHER)
    assert await service.stores.gateway_approvals.begin(waiting, waiting.call)

    assert (await modern(caller, "tasks/get", named))["result"]["status"] == WAITING
    assert (await modern(caller, "tasks/cancel", named)).get("result") == {"resultType": "complete"}
    assert (await modern(caller, "tasks/get", named))["result"]["status"] == WAITING

    lost = GatewaySettlement(call=waiting.call, result=ToolResult.unknown("Who knows."), duration_ms=0, at=after(1))
    await service.stores.gateway_ledger.settle(lost, an_audit_event(301))
    done = (await modern(caller, "tasks/get", named))["result"]
    assert "Who knows." in done["result"]["content"][0]["text"]


@pytest.mark.requirement("F5", "C3")
async def test_a_task_whose_approval_is_denied_says_so_as_often_as_it_is_asked(service: Service) -> None:
    caller = await a_front(service, tool_policies=NEEDS_APPROVAL)
    task = (await asked(caller, "tools/call", AS_TASK))["task"]
    [approval] = await pending(service)
    await decided(service, approval["id"], "deny", reason="Not today.")
    for _ in range(2):
        assert (await asked(caller, "tasks/get", {"taskId": task["taskId"]}))["status"] == "failed"
        result = await asked(caller, "tasks/result", {"taskId": task["taskId"]})
        assert result["isError"]
        assert "Not today." in result["content"][0]["text"]
    assert (await pending(service), await runs_of(service)) == ([], [])


@pytest.mark.requirement("F5", "C3")
async def test_a_task_that_is_cancelled_waits_for_no_approval_any_more(service: Service) -> None:
    caller = await a_front(service, tool_policies=NEEDS_APPROVAL)
    task = (await asked(caller, "tools/call", AS_TASK))["task"]
    assert (await asked(caller, "tasks/cancel", {"taskId": task["taskId"]}))["status"] == "cancelled"
    assert await pending(service) == []
    assert (await asked(caller, "tasks/get", {"taskId": task["taskId"]}))["status"] == "cancelled"
    calls = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert [settled and settled.result.outcome for _, settled in calls] == [ToolOutcome.BLOCKED]
    assert await runs_of(service) == []


@pytest.mark.requirement("F5", "C4")
async def test_a_canary_token_in_the_result_of_a_task_ends_the_session(service: Service) -> None:
    caller = await a_front(service, canary_tokens=[{"id": "door", "token": "violet-otter-42"}])
    task, run_id = await begun(service, caller)
    await ended_with(service, run_id, "It is violet-otter-42.")
    answer = await caller.legacy("tasks/result", {"taskId": task["taskId"]})
    assert "violet" not in json.dumps(answer)
    assert "error" in answer
    assert (await caller.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 401
