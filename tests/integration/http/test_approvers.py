"""Approvals that policy leaves to named people: over the API, for runs and gateway sessions, one by
one and with their run, and in the console."""

from typing import Any, cast

import pytest

from domain.identity.role import Role
from domain.policy.approvers import Approvers
from tests.integration.http.gateway_caller import ECHO, an_agent, opened
from tests.integration.http.service import Service, problem_of, token_of
from tests.integration.http.test_approvals import a_waiting_run
from tests.integration.http.test_console_inbox import page, send

pytestmark = pytest.mark.requirement("P2", "C3")
OPERATOR, ADMIN = token_of(Role.OPERATOR), token_of(Role.ADMIN)
ONLY_OPERATOR: dict[str, object] = {"people": ["key_operator"], "groups": ["Leads"]}


async def a_guarded_run(service: Service) -> dict[str, Any]:
    """A run with one approval that only `key_operator` decides."""
    service.worker.approvers = (Approvers(people=("key_operator",)),)
    run = await a_waiting_run(service)
    service.worker.approvers = ()
    return run


async def approval(service: Service, approval_id: str, token: str) -> dict[str, Any]:
    return cast("dict[str, Any]", (await service.call("GET", f"/v1/approvals/{approval_id}", token=token)).json())


async def test_who_is_no_approver_is_refused_whatever_their_role_and_told_why(service: Service) -> None:
    run = await a_guarded_run(service)
    [call] = run["pending"]
    path = f"/v1/approvals/{call['approval_id']}"

    seen = await approval(service, call["approval_id"], ADMIN)
    assert (seen["approvers"], seen["approvable"], seen["not_approvable"]) == (
        [{"people": ["key_operator"]}],
        False,
        "not_an_approver",
    )
    for decision in ("approve", "deny"):
        answer = await service.call("POST", path, json={"decision": decision}, token=ADMIN)
        problem_of(answer, 403, "not_an_approver")
    resumed = {"approvals": [{"tool_call_id": call["id"], "decision": "approve"}]}
    problem_of(
        await service.call("POST", f"/v1/runs/{run['id']}/resume", json=resumed, token=ADMIN), 403, "not_an_approver"
    )
    assert (await approval(service, call["approval_id"], OPERATOR))["approvable"] is True
    decided = await service.call("POST", path, json={"decision": "approve"}, token=OPERATOR)
    assert (decided.status_code, decided.json()["decided_by"], decided.json()["approvable"]) == (
        200,
        "key_operator",
        False,
    )


async def test_a_list_says_of_each_approval_whether_the_caller_may_approve_it(service: Service) -> None:
    guarded = await a_guarded_run(service)
    await a_waiting_run(service)
    listed = (await service.call("GET", "/v1/approvals?state=pending", token=ADMIN)).json()["data"]
    assert [(each["approvable"], each["not_approvable"]) for each in listed] == [
        (True, None),
        (False, "not_an_approver"),
    ]
    assert listed[1]["run_id"] == guarded["id"]
    viewed = (await service.call("GET", "/v1/approvals", token=token_of(Role.VIEWER))).json()["data"]
    assert {each["not_approvable"] for each in viewed} == {"role_insufficient"}


async def test_a_rule_names_who_decides_calls_through_the_gateway(service: Service) -> None:
    rules = {ECHO: {"decision": "require_approval", "approvers": ONLY_OPERATOR}}
    agent = await an_agent(service, tool_policies=rules)
    caller = await opened(service)
    await caller.modern("tools/call", {"name": ECHO, "arguments": {}})
    explained = (await service.call("GET", f"/v1/tools/{ECHO}/explain?agent={agent['id']}")).json()
    assert explained["effective"]["approvers"] == [ONLY_OPERATOR]
    [waiting] = (await service.call("GET", "/v1/approvals?state=pending")).json()["data"]
    path = f"/v1/approvals/{waiting['id']}"
    assert (waiting["approvers"], waiting["gateway_session_id"]) == ([ONLY_OPERATOR], caller.session_id)
    problem_of(await service.call("POST", path, json={"decision": "approve"}, token=ADMIN), 403, "not_an_approver")
    assert (await service.call("POST", path, json={"decision": "approve"}, token=OPERATOR)).status_code == 200


async def test_the_inbox_shows_others_approvals_without_letting_them_be_decided(service: Service) -> None:
    run = await a_guarded_run(service)
    approval_id = run["pending"][0]["approval_id"]
    shown = await page(service, f"/inbox?item=approval:{approval_id}", ADMIN)
    assert "Decided only by key_operator." in shown
    assert "you are not among them" in shown
    assert 'value="approve"' not in shown
    assert f'value="approval:{approval_id}"' not in shown  # no box to choose it
    for path in ("/approvals", f"/runs/{run['id']}"):
        elsewhere = await page(service, path, ADMIN)
        assert "you are not among them" in elsewhere
        assert 'value="approve"' not in elsewhere

    assert (await send(service, f"/inbox/approvals/{approval_id}", ADMIN, decision="deny")).status_code == 403
    many = await send(service, "/inbox/bulk", ADMIN, decision="deny", item=f"approval:{approval_id}")
    assert "you are not among them" in many.text
    assert (await approval(service, approval_id, ADMIN))["state"] == "pending"
    assert 'value="approve"' in await page(service, f"/inbox?item=approval:{approval_id}", OPERATOR)


@pytest.mark.parametrize("approvers", [{}, {"people": ["ann@example.com"]}, {"groups": [""]}, {"teams": ["x"]}])
async def test_a_rule_whose_approvers_are_nobody_is_refused(service: Service, approvers: dict[str, object]) -> None:
    rules = {ECHO: {"decision": "require_approval", "approvers": approvers}}
    answer = await service.call("PATCH", "/v1/organization", json={"tool_policies": rules})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
