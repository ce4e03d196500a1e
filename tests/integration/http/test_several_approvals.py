"""Approvals that several people must give: over the API, for runs and gateway sessions, and in the
console."""

from dataclasses import replace
from typing import Any, cast

import pytest

from domain.identity.role import Role
from domain.ids import ApiKeyId, UserId
from tests.builders import a_key, an_audit_event
from tests.composition import MODEL
from tests.integration.http.gateway_caller import ECHO, an_agent, opened
from tests.integration.http.service import Act, Service, paths_of, problem_of, token_of
from tests.integration.http.test_approvals import a_waiting_run
from tests.integration.http.test_console_inbox import page
from tests.people_builders import a_provider, a_user

pytestmark = pytest.mark.requirement("P2", "C3")
RESPONSES = "/openai/v1/responses"
APPROVE, DENY = {"decision": "approve"}, {"decision": "deny"}
ANN, ANNS_OTHER, BOB = "dgm_ann", "dgm_ann-too", "dgm_bob"


@pytest.fixture
async def people(service: Service) -> Service:
    """Keys of Ann, two of them, and of Bob."""
    await service.stores.identity_providers.add(a_provider(), an_audit_event(10))
    for number, name in enumerate(("ann", "bob")):
        user = a_user(UserId(f"usr_{name}"), subject=name)
        await service.stores.user_access.add(user, an_audit_event(number + 11))
    for number, (token, person) in enumerate(((ANN, "usr_ann"), (ANNS_OTHER, "usr_ann"), (BOB, "usr_bob"))):
        key = a_key(ApiKeyId(f"key_of_{number}"), token=token, role=Role.OPERATOR)
        await service.stores.identity.add_key(replace(key, person_id=UserId(person)), an_audit_event(number + 1))
    service.worker.approvals_needed = 2
    return service


async def view(service: Service, approval_id: str, token: str) -> dict[str, Any]:
    return cast("dict[str, Any]", (await service.call("GET", f"/v1/approvals/{approval_id}", token=token)).json())


async def test_a_call_is_approved_once_as_many_people_have_approved_it_as_policy_asks_for(people: Service) -> None:
    run = await a_waiting_run(people)
    approval_id = run["pending"][0]["approval_id"]
    path = f"/v1/approvals/{approval_id}"
    first = (await people.call("POST", path, json=APPROVE, token=ANN)).json()
    assert (first["state"], first["approvals_needed"], first["decided_by"]) == ("pending", 2, None)
    assert [each["by"] for each in first["consents"]] == ["key_of_0"]
    assert (await people.call("GET", f"/v1/runs/{run['id']}")).json()["status"] == "requires_action"
    assert (await view(people, approval_id, ANN))["not_approvable"] == "approved_before"
    assert (await view(people, approval_id, BOB))["approvable"] is True

    second = (await people.call("POST", path, json=APPROVE, token=BOB)).json()
    assert (second["state"], second["decided_by"]) == ("approved", "key_of_2")
    assert (await people.call("GET", f"/v1/runs/{run['id']}")).json()["status"] != "requires_action"
    entries = (await people.call("GET", "/v1/audit-events")).json()["data"]
    assert [(entry["action"], entry["actor"]) for entry in entries if entry["action"].startswith("tool.appr")] == [
        ("tool.approved", "key_of_2"),
        ("tool.approval_given", "key_of_2"),
        ("tool.approval_given", "key_of_0"),
    ]


async def test_one_person_counts_once_whatever_their_keys_and_a_key_of_no_person_not_at_all(people: Service) -> None:
    run = await a_waiting_run(people)
    call = run["pending"][0]
    path = f"/v1/approvals/{call['approval_id']}"
    await people.call("POST", path, json=APPROVE, token=ANN)
    problem_of(await people.call("POST", path, json=APPROVE, token=ANNS_OTHER), 403, "approved_before")
    problem_of(await people.call("POST", path, json=APPROVE), 403, "person_required")
    resumed = {"approvals": [{"tool_call_id": call["id"], "decision": "approve"}]}
    again = await people.call("POST", f"/v1/runs/{run['id']}/resume", json=resumed, token=ANNS_OTHER)
    problem_of(again, 403, "approved_before")
    assert (await view(people, call["approval_id"], BOB))["state"] == "pending"


async def test_the_key_of_a_person_who_was_removed_is_not_a_second_person(people: Service) -> None:
    run = await a_waiting_run(people)
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    await people.call("POST", path, json=APPROVE, token=ANN)
    assert (await people.call("PATCH", "/v1/users/usr_bob", json={"status": "deactivated"})).status_code == 200
    problem_of(await people.call("POST", path, json=APPROVE, token=BOB), 403, "person_required")
    assert (await people.call("POST", path, json=DENY, token=BOB)).json()["state"] == "denied"


async def test_a_resumption_with_the_first_approval_leaves_the_run_waiting(people: Service) -> None:
    run = await a_waiting_run(people)
    resumed = {"approvals": [{"tool_call_id": run["pending"][0]["id"], "decision": "approve"}]}
    path = f"/v1/runs/{run['id']}/resume"
    assert (await people.call("POST", path, json=resumed, token=ANN)).json()["status"] == "requires_action"
    assert (await people.call("POST", path, json=resumed, token=BOB)).json()["status"] == "queued"


async def test_a_resumption_that_is_refused_stores_no_approval_of_it(people: Service) -> None:
    run = await a_waiting_run(people)
    call = run["pending"][0]
    approvals = [{"tool_call_id": call["id"], "decision": "approve"}]
    resumed = {"approvals": approvals, "tool_results": [{"tool_call_id": "call_other", "result": "sent"}]}
    refused = await people.call("POST", f"/v1/runs/{run['id']}/resume", json=resumed, token=ANN)
    problem_of(refused, 422, "tool_call_not_pending")
    assert not (await view(people, call["approval_id"], ANN))["consents"]


@pytest.mark.parametrize("token", [ANN, BOB, token_of(Role.OPERATOR)])
async def test_one_person_denies_also_after_an_approval(people: Service, token: str) -> None:
    run = await a_waiting_run(people)
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    await people.call("POST", path, json=APPROVE, token=ANN)
    assert (await people.call("POST", path, json=DENY, token=token)).json()["state"] == "denied"


async def test_no_approver_changes_what_the_others_approve(people: Service) -> None:
    run = await a_waiting_run(people)
    path = f"/v1/approvals/{run['pending'][0]['approval_id']}"
    edited = await people.call("POST", path, json={**APPROVE, "arguments": {"to": "me"}}, token=ANN)
    assert paths_of(problem_of(edited, 422, "arguments_invalid")) == ["approvals.0.arguments"]


async def test_a_rule_asks_for_several_people_through_the_gateway(people: Service) -> None:
    rules = {ECHO: {"decision": "require_approval", "approvals_needed": 2}}
    agent = await an_agent(people, tool_policies=rules)
    caller = await opened(people)
    await caller.modern("tools/call", {"name": ECHO, "arguments": {}})
    explained = (await people.call("GET", f"/v1/tools/{ECHO}/explain?agent={agent['id']}")).json()
    assert explained["effective"]["approvals_needed"] == 2
    [waiting] = (await people.call("GET", "/v1/approvals?state=pending")).json()["data"]
    path = f"/v1/approvals/{waiting['id']}"
    assert (await people.call("POST", path, json=APPROVE, token=ANN)).json()["state"] == "pending"
    problem_of(await people.call("POST", path, json=APPROVE, token=ANNS_OTHER), 403, "approved_before")
    assert (await people.call("POST", path, json=APPROVE, token=BOB)).json()["state"] == "approved"


@pytest.mark.parametrize("needed", [0, 11])
async def test_a_rule_asks_for_one_to_ten_people(people: Service, needed: int) -> None:
    rules = {ECHO: {"decision": "require_approval", "approvals_needed": needed}}
    body = {"name": "x", "model": "scripted:demo.yaml", "tool_policies": rules}
    problem_of(await people.call("POST", "/v1/agents", json=body), 422, "body_invalid")


async def test_the_inbox_says_who_has_approved_and_lets_each_person_approve_once(people: Service) -> None:
    run = await a_waiting_run(people)
    approval_id = run["pending"][0]["approval_id"]
    await people.call("POST", f"/v1/approvals/{approval_id}", json=APPROVE, token=ANN)
    shown = await page(people, f"/inbox?item=approval:{approval_id}", BOB)
    assert "2 different people must approve; 1 did: key_of_0." in shown
    assert 'value="approve"' in shown
    assert 'value="approve"' not in await page(people, f"/inbox?item=approval:{approval_id}", ANN)


@pytest.mark.requirement("X1")
async def test_the_first_who_approves_by_an_item_of_a_response_gets_the_response_that_waits(people: Service) -> None:
    await people.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    people.worker.act = Act.APPROVE
    asked = (await people.call("POST", RESPONSES, json={"model": "guide", "input": "go"})).json()
    [request] = [item for item in asked["output"] if item["type"] == "mcp_approval_request"]
    given = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": True}
    body: dict[str, Any] = {"model": "guide", "input": [given]}
    first = await people.call("POST", RESPONSES, json=body, token=ANN)
    assert (first.status_code, first.json()) == (200, asked)
    [waiting] = (await people.call("GET", "/v1/approvals")).json()["data"]
    assert (waiting["state"], [each["by"] for each in waiting["consents"]]) == ("pending", ["key_of_0"])
    people.worker.act = Act.FINISH
    second = (await people.call("POST", RESPONSES, json=body, token=BOB)).json()
    assert (second["status"], second["id"]) == ("completed", f"{asked['id']}_1")
