"""Approvals over HTTP: listed, decided by their own route or with their run, and refused with
codes."""

from typing import Any

import pytest

from domain.identity.role import Role
from tests.integration.http.service import OTHER_ADMIN, Act, Service, paths_of, problem_of, token_of

OPERATOR = token_of(Role.OPERATOR)


async def a_waiting_run(service: Service) -> dict[str, Any]:
    agent = {"name": "sender", "model": "scripted:demo.yaml"}
    if (await service.call("GET", "/v1/agents/sender")).status_code == 404:
        await service.call("POST", "/v1/agents", json=agent)
    service.worker.act = Act.APPROVE
    run = (await service.call("POST", "/v1/runs", json={"agent": "sender", "input": "Send it."})).json()
    service.worker.act = Act.REST
    waiting: dict[str, Any] = (await service.call("GET", f"/v1/runs/{run['id']}")).json()
    assert waiting["status"] == "requires_action"
    return waiting


@pytest.mark.requirement("C3")
async def test_a_pending_call_names_its_approval_which_is_listed(service: Service) -> None:
    run = await a_waiting_run(service)
    other = await a_waiting_run(service)
    [call] = run["pending"]
    assert call["reason"]
    page = (await service.call("GET", "/v1/approvals?state=pending&limit=1", token=token_of(Role.VIEWER))).json()
    assert [entry["run_id"] for entry in page["data"]] == [other["id"]]
    rest = (await service.call("GET", f"/v1/approvals?limit=1&cursor={page['next_cursor']}")).json()
    [listed] = rest["data"]
    assert rest["next_cursor"] is None
    assert (listed["id"], listed["expires_at"]) == (call["approval_id"], call["expires_at"])
    assert (listed["state"], listed["tool"], listed["arguments"]) == ("pending", call["name"], call["params"])
    of_run = (await service.call("GET", f"/v1/approvals?run_id={run['id']}")).json()
    assert of_run["data"] == [listed]
    assert (await service.call("GET", "/v1/approvals?state=denied")).json()["data"] == []
    assert (await service.call("GET", "/v1/approvals?state=undecided")).status_code == 422
    assert (await service.call("GET", "/v1/approvals", token=OTHER_ADMIN)).json()["data"] == []


@pytest.mark.requirement("C3")
async def test_an_approval_is_decided_once(service: Service) -> None:
    run = await a_waiting_run(service)
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    decided = await service.call("POST", path, json={"decision": "approve", "reason": "Fine."}, token=OPERATOR)
    assert decided.status_code == 200
    approval = decided.json()
    assert (approval["state"], approval["decided_by"], approval["reason"]) == ("approved", "key_operator", "Fine.")
    after = (await service.call("GET", f"/v1/runs/{run['id']}")).json()
    assert (after["status"], after["pending"], service.worker.submitted[-1]) == ("queued", [], run["id"])
    for word in ("approve", "deny"):
        problem_of(await service.call("POST", path, json={"decision": word}), 409, "approval_decided")
    problem_of(
        await service.call("POST", path, json={"decision": "deny"}, token=OTHER_ADMIN), 404, "approval_not_found"
    )
    problem_of(await service.call("POST", "/v1/approvals/apr_x", json={"decision": "deny"}), 404, "approval_not_found")


@pytest.mark.requirement("C3")
async def test_resuming_a_run_decides_its_approvals(service: Service) -> None:
    run = await a_waiting_run(service)
    [call] = run["pending"]
    resume = f"/v1/runs/{run['id']}/resume"
    denial = {"approvals": [{"tool_call_id": call["id"], "decision": "deny", "reason": "Too late."}]}
    problem_of(await service.call("POST", resume, json=denial, token=token_of(Role.RUNNER)), 403, "role_insufficient")
    result = {"tool_results": [{"tool_call_id": call["id"], "result": "sent"}]}
    problem_of(await service.call("POST", resume, json=result), 422, "tool_call_not_pending")
    stranger = {"approvals": [*denial["approvals"], {"tool_call_id": "call_x", "decision": "deny"}]}
    refused = problem_of(await service.call("POST", resume, json=stranger), 422, "tool_call_not_pending")
    assert paths_of(refused) == ["approvals.1.tool_call_id"]
    assert (await service.call("GET", f"/v1/runs/{run['id']}")).json() == run
    resumed = await service.call("POST", resume, json=denial, token=OPERATOR)
    assert (resumed.status_code, resumed.json()["status"]) == (200, "queued")
    [approval] = (await service.call("GET", "/v1/approvals?state=denied")).json()["data"]
    assert approval["reason"] == "Too late."
    problem_of(await service.call("POST", resume, json=denial, token=OPERATOR), 409, "approval_decided")


@pytest.mark.requirement("C3")
async def test_a_changed_agent_makes_its_approvals_stale(service: Service) -> None:
    run = await a_waiting_run(service)
    await service.call("PATCH", "/v1/agents/sender", json={"instructions": "Be careful."})
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    for _ in range(2):
        problem_of(
            await service.call("POST", path, json={"decision": "approve"}, token=OPERATOR), 409, "approval_stale"
        )
    assert service.worker.submitted[-1] == run["id"]
    assert (await service.call("GET", f"/v1/runs/{run['id']}")).json()["status"] == "queued"


@pytest.mark.requirement("C3")
async def test_a_cancelled_run_takes_its_approvals_along_and_a_deleted_thread_too(service: Service) -> None:
    run = await a_waiting_run(service)
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    await service.call("POST", f"/v1/runs/{run['id']}/cancel")
    problem_of(await service.call("POST", path, json={"decision": "approve"}), 409, "approval_cancelled")
    assert (await service.call("DELETE", f"/v1/threads/{run['thread_id']}")).status_code == 204
    problem_of(await service.call("POST", path, json={"decision": "approve"}), 404, "approval_not_found")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({}, "decision"),
        ({"decision": "maybe"}, "decision"),
        ({"decision": "approve", "arguments": "x"}, "arguments"),
        ({"decision": "approve", "argument": {}}, "argument"),
        ({"decision": "deny", "reason": "x" * 2001}, "reason"),
    ],
)
async def test_a_decision_that_is_none_is_refused(service: Service, body: dict[str, object], path: str) -> None:
    run = await a_waiting_run(service)
    refused = await service.call("POST", f"/v1/approvals/{run['pending'][0]['approval_id']}", json=body)
    assert paths_of(problem_of(refused, 422, "body_invalid")) == [path]
    inside = {"approvals": [{"tool_call_id": run["pending"][0]["id"], **body}]}
    refused = await service.call("POST", f"/v1/runs/{run['id']}/resume", json=inside)
    assert paths_of(problem_of(refused, 422, "body_invalid")) == [f"approvals.0.{path}"]


async def test_resuming_with_nothing_is_refused(service: Service) -> None:
    run = await a_waiting_run(service)
    problem_of(await service.call("POST", f"/v1/runs/{run['id']}/resume", json={}), 422, "tool_results_invalid")


@pytest.mark.requirement("C6")
async def test_a_decision_that_is_given_twice_decides_nothing(service: Service) -> None:
    for path in ("/v1/approvals/apr_1", "/v1/runs/run_1/resume"):
        for body in (b'{"decision":"deny","decision":"approve"}', b'{"decision":"deny","\\u0064ecision":"approve"}'):
            problem_of(await service.call("POST", path, content=body), 400, "json_malformed")
