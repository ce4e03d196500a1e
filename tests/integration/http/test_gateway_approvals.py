"""Calls of gateway sessions that need an approval: asked for, decided, made once, told of their
denial."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import GatewaySessionId
from domain.tools.result import ToolOutcome
from tests.builders import ORG
from tests.integration.http.gateway_caller import ECHO, Caller, Json, actions, an_agent, opened
from tests.integration.http.service import Service, problem_of, token_of

OPERATOR = token_of(Role.OPERATOR)
NEEDS_APPROVAL: Mapping[str, Json] = {ECHO: {"decision": "require_approval"}}
SENT = "hi"


@pytest.fixture
async def caller(service: Service) -> Caller:
    """A client whose calls of `echo` need an approval."""
    await an_agent(service, tool_policies=NEEDS_APPROVAL)
    return await opened(service)


async def called(caller: Caller, arguments: Json | None = None, *, state: object = None) -> dict[str, Any]:
    """The answer to a call in the newer generation: its result, or its error."""
    params: Json = {"name": ECHO, "arguments": arguments or {}}
    if state is not None:
        params["requestState"] = state
    answer: dict[str, Any] = (await caller.modern("tools/call", params)).json()
    return cast("dict[str, Any]", answer.get("result") or answer["error"])


async def called_legacy(caller: Caller, arguments: Json | None = None) -> dict[str, Any]:
    answer = await caller.legacy("tools/call", {"name": ECHO, "arguments": arguments or {}})
    return cast("dict[str, Any]", answer["result"])


async def pending(service: Service) -> list[dict[str, Any]]:
    response = await service.call("GET", "/v1/approvals?state=pending", token=token_of(Role.VIEWER))
    return cast("list[dict[str, Any]]", response.json()["data"])


async def decided(service: Service, approval_id: str, word: str = "approve", **more: object) -> dict[str, Any]:
    response = await service.call(
        "POST", f"/v1/approvals/{approval_id}", json={"decision": word, **more}, token=OPERATOR
    )
    assert response.status_code == 200, response.text
    return cast("dict[str, Any]", response.json())


async def outcomes(service: Service, caller: Caller) -> list[ToolOutcome | None]:
    """What became of the session's calls."""
    calls = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    return [None if settlement is None else settlement.result.outcome for _, settlement in calls]


@pytest.mark.requirement("C3", "F5")
async def test_a_modern_client_comes_back_with_the_state_and_its_call_is_made_once(
    service: Service, caller: Caller
) -> None:
    waiting = await called(caller, {"n": 1})
    assert set(waiting) == {"resultType", "requestState"}
    assert waiting["resultType"] == "input_required"
    [approval] = await pending(service)
    assert (approval["gateway_session_id"], approval["run_id"]) == (caller.session_id, None)
    assert (approval["tool"], approval["arguments"], approval["requested_by"]) == (ECHO, {"n": 1}, "key_admin")
    again = await called(caller, {"n": 1}, state=waiting["requestState"])
    assert again["resultType"] == "input_required"
    assert await pending(service) == [approval]
    assert await outcomes(service, caller) == [None]

    after = await decided(service, approval["id"], reason="Fine.")
    assert (after["state"], after["decided_by"], after["reason"]) == ("approved", "key_operator", "Fine.")
    made = await called(caller, {"n": 1}, state=waiting["requestState"])

    assert (made["resultType"], made["content"][0]["text"], made["isError"]) == ("complete", SENT, False)
    assert await outcomes(service, caller) == [ToolOutcome.SUCCEEDED]
    assert [action for action in await actions(service) if action.startswith("tool.")] == [
        AuditAction.TOOL_EXECUTED,
        AuditAction.TOOL_APPROVED,
    ]
    used = await called(caller, {"n": 1}, state=waiting["requestState"])
    assert used["resultType"] == "input_required"
    assert [other["id"] for other in await pending(service)] != [approval["id"]]


@pytest.mark.requirement("C3", "F5")
async def test_a_legacy_client_makes_the_same_call_again_once_it_is_approved(service: Service, caller: Caller) -> None:
    told = await called_legacy(caller, {"a": 1, "b": 2})
    [approval] = await pending(service)
    assert told["isError"] is True
    assert approval["id"] in told["content"][0]["text"]
    await decided(service, approval["id"])

    made = await called_legacy(caller, {"b": 2, "a": 1})

    assert (made["content"][0]["text"], made["isError"]) == (SENT, False)
    assert (await called_legacy(caller, {"a": 1, "b": 2}))["isError"] is True
    assert len(await pending(service)) == 1


@pytest.mark.requirement("C3")
async def test_other_arguments_are_another_call(service: Service, caller: Caller) -> None:
    waiting = await called(caller, {"n": 1})
    [first] = await pending(service)
    await decided(service, first["id"])

    edited = await called(caller, {"n": 2}, state=waiting["requestState"])

    assert edited["resultType"] == "input_required"
    [second] = await pending(service)
    assert second["arguments"] == {"n": 2}
    assert await outcomes(service, caller) == [None, None]


@pytest.mark.requirement("C3", "F5")
async def test_a_denial_is_told_once_with_its_reason(service: Service, caller: Caller) -> None:
    await called_legacy(caller)
    [approval] = await pending(service)
    await decided(service, approval["id"], "deny", reason="Not on Fridays.")

    told = await called_legacy(caller)

    assert told["isError"] is True
    assert "Not on Fridays." in told["content"][0]["text"]
    assert await outcomes(service, caller) == [ToolOutcome.BLOCKED]
    assert AuditAction.TOOL_DENIED in await actions(service)
    problem = await service.call("POST", f"/v1/approvals/{approval['id']}", json={"decision": "approve"})
    problem_of(problem, 409, "approval_decided")


@pytest.mark.requirement("C3")
async def test_an_approver_may_change_the_arguments_within_the_schema(service: Service, caller: Caller) -> None:
    await called_legacy(caller, {"n": 1})
    [approval] = await pending(service)
    after = await decided(service, approval["id"], arguments={"n": 3})
    assert after["edited_arguments"] == {"n": 3}

    assert (await called_legacy(caller, {"n": 1}))["isError"] is False

    ((call, _),) = await service.stores.gateway_ledger.calls_of(ORG, GatewaySessionId(caller.session_id))
    assert call.params == {"n": 3}


@pytest.mark.requirement("C3")
async def test_after_the_agent_has_changed_the_call_is_asked_for_anew(service: Service, caller: Caller) -> None:
    waiting = await called(caller)
    [old] = await pending(service)
    response = await service.call("PATCH", "/v1/agents/toolbox", json={"instructions": "Be brief."})
    assert response.status_code == 200, response.text

    stale = await service.call("POST", f"/v1/approvals/{old['id']}", json={"decision": "approve"}, token=OPERATOR)
    problem_of(stale, 409, "approval_stale")
    again = await called(caller, state=waiting["requestState"])

    assert again["resultType"] == "input_required"
    [new] = await pending(service)
    assert new["agent_version"] == old["agent_version"] + 1
    await decided(service, new["id"])
    assert (await called(caller, state=waiting["requestState"]))["isError"] is False


@pytest.mark.requirement("C3", "B13", "S5")
async def test_after_the_server_has_changed_the_call_is_asked_for_again(service: Service, caller: Caller) -> None:
    waiting = await called(caller)
    [old] = await pending(service)
    slug = old["server"]["slug"]
    assert (old["server"]["version"], "another" in old["server"]["runs"]) == (1, False)
    response = await service.call("PATCH", f"/v1/mcp-servers/{slug}", json={"command": "another"})
    assert response.status_code == 200, response.text

    stale = await service.call("POST", f"/v1/approvals/{old['id']}", json={"decision": "approve"}, token=OPERATOR)
    problem_of(stale, 409, "approval_stale")
    assert (await called(caller, state=waiting["requestState"]))["resultType"] == "input_required"
    [new] = await pending(service)
    assert (new["server"]["version"], "another" in new["server"]["runs"]) == (2, True)
    await decided(service, new["id"])
    await service.call("PATCH", f"/v1/mcp-servers/{slug}", json={"command": "a-third"})
    assert (await called(caller, state=waiting["requestState"]))["resultType"] == "input_required"
    [third] = await pending(service)
    await decided(service, third["id"])
    assert (await called(caller, state=waiting["requestState"]))["isError"] is False


@pytest.mark.requirement("C3", "F5")
async def test_whoever_opened_the_session_does_not_approve_where_policy_wants_somebody_else(service: Service) -> None:
    policy = {"decision": "require_approval", "allow_self_approval": False}
    await an_agent(service, tool_policies={ECHO: policy})
    caller = await opened(service)
    await called_legacy(caller)
    [approval] = await pending(service)

    own = await service.call("POST", f"/v1/approvals/{approval['id']}", json={"decision": "approve"})
    problem_of(own, 403, "self_approval_forbidden")
    await decided(service, approval["id"])

    assert (await called_legacy(caller))["isError"] is False


@pytest.mark.requirement("C3", "F5")
async def test_a_revoked_session_waits_for_nothing(service: Service, caller: Caller) -> None:
    await called_legacy(caller)
    [approval] = await pending(service)
    await service.call("DELETE", f"/v1/gateway-sessions/{caller.session_id}")

    assert await pending(service) == []
    late = await service.call("POST", f"/v1/approvals/{approval['id']}", json={"decision": "approve"})
    problem_of(late, 409, "approval_cancelled")


@pytest.mark.requirement("C3", "C6")
async def test_a_state_is_of_one_session_only(service: Service, caller: Caller) -> None:
    state = (await called(caller))["requestState"]
    other = await opened(service)

    for wrong, session in ((state, other), (state[:-6] + "AAAAA=", caller), ("é", caller), (7, caller)):
        assert (await called(session, state=wrong))["code"] == -32602
