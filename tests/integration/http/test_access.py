"""Who may do what: every route against every role, without a key, and from another organization."""

import re

import pytest
from litestar.routes import HTTPRoute

from domain.audit.event import AuditAction
from domain.identity.role import Role
from tests.builders import ORG, an_audit_event
from tests.composition import MODEL
from tests.integration.http.route_cases import (
    IDP_BODY,
    OF_PEOPLE,
    OF_REGISTRIES,
    OF_RUNS,
    OF_SERVERS_AND_WEBHOOKS,
    OF_TOOLS,
    Case,
)
from tests.integration.http.service import OTHER_ADMIN, PLATFORM, Act, Service, problem_of, token_of
from tests.people_builders import a_console_session, a_user

RUN_BODY: dict[str, object] = {"agent": "guide", "input": "hello"}
AGENT_BODY: dict[str, object] = {"name": "new", "model": MODEL}
SERVER_BODY: dict[str, object] = {"slug": "new", "kind": "custom", "command": "server"}
SCHEDULE_BODY: dict[str, object] = {"name": "new", "cron": "0 7 * * *", **RUN_BODY}
WORKFLOW_BODY: dict[str, object] = {"name": "new", "nodes": [{"id": "start", "kind": "entrypoint"}]}
WHY: dict[str, object] = {"reason": "Ticket"}
CASES = [
    Case(method="POST", path="/v1/agents", role=Role.ADMIN, status=201, body=AGENT_BODY),
    Case(method="GET", path="/v1/agents", role=Role.VIEWER),
    Case(method="GET", path="/v1/agents/{agent}", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/agents/{agent}", role=Role.ADMIN, body={"enabled": True}, foreign=True),
    Case(method="DELETE", path="/v1/agents/{agent}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="GET", path="/v1/agents/{agent}/versions", role=Role.VIEWER, foreign=True),
    Case(method="POST", path="/v1/mcp-servers", role=Role.ADMIN, status=201, body=SERVER_BODY),
    Case(method="GET", path="/v1/mcp-servers", role=Role.VIEWER),
    Case(method="POST", path="/v1/mcp-servers/test", role=Role.ADMIN, body=SERVER_BODY),
    Case(method="GET", path="/v1/mcp-servers/{server}", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/mcp-servers/{server}", role=Role.ADMIN, body={"timeout_s": 9}, foreign=True),
    Case(method="DELETE", path="/v1/mcp-servers/{server}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/mcp-servers/{server}/test", role=Role.ADMIN, foreign=True),
    # The server is one that is run in place, which only those who may install are told.
    Case(method="POST", path="/v1/mcp-servers/{server}/install", role=Role.ADMIN, status=409, foreign=True),
    # The server is not one that a person authorizes, which only those who may begin it are told.
    Case(method="POST", path="/v1/mcp-servers/{server}/authorize", role=Role.ADMIN, status=409, foreign=True),
    *OF_TOOLS,
    Case(method="GET", path="/v1/tools", role=Role.VIEWER),
    Case(method="GET", path="/v1/tools/{name}/explain", role=Role.VIEWER, query="?agent={agent}", foreign=True),
    Case(method="POST", path="/v1/threads", role=Role.RUNNER, status=201),
    Case(method="GET", path="/v1/threads", role=Role.VIEWER),
    Case(method="GET", path="/v1/threads/{thread_id}", role=Role.VIEWER, foreign=True),
    Case(method="DELETE", path="/v1/threads/{thread_id}", role=Role.RUNNER, status=204, foreign=True),
    Case(method="GET", path="/v1/threads/{thread_id}/messages", role=Role.VIEWER, foreign=True),
    # Whoever may add sources is told that the body lacks a name.
    Case(method="POST", path="/v1/threads/{thread_id}/sources", role=Role.RUNNER, status=422),
    Case(method="GET", path="/v1/threads/{thread_id}/sources", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/sources/{source_id}", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/sources/{source_id}/content", role=Role.VIEWER, foreign=True),
    Case(method="DELETE", path="/v1/sources/{source_id}", role=Role.OPERATOR, status=204, foreign=True),
    Case(
        method="POST",
        path="/v1/threads/{thread_id}/messages",
        role=Role.RUNNER,
        status=201,
        body={"role": "user", "content": "hi"},
        foreign=True,
    ),
    Case(method="POST", path="/v1/threads/{thread_id}/fork", role=Role.RUNNER, status=201, foreign=True),
    # The thread is not closed, which only those who may open it are told.
    Case(method="POST", path="/v1/threads/{thread_id}/release", role=Role.OPERATOR, status=409, foreign=True),
    Case(method="POST", path="/v1/runs", role=Role.RUNNER, status=202, body=RUN_BODY, foreign=True),
    Case(method="POST", path="/v1/runs/wait", role=Role.RUNNER, body=RUN_BODY, foreign=True),
    Case(method="POST", path="/v1/runs/stream", role=Role.RUNNER, body=RUN_BODY, foreign=True),
    Case(
        method="POST",
        path="/v1/threads/{thread_id}/runs",
        role=Role.RUNNER,
        status=202,
        body=RUN_BODY,
        foreign=True,
    ),
    Case(method="POST", path="/v1/threads/{thread_id}/runs/wait", role=Role.RUNNER, body=RUN_BODY, foreign=True),
    Case(method="POST", path="/v1/threads/{thread_id}/runs/stream", role=Role.RUNNER, body=RUN_BODY, foreign=True),
    Case(method="GET", path="/v1/runs/{run_id}", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/runs/{run_id}/wait", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/runs/{run_id}/stream", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/runs/{run_id}/events", role=Role.VIEWER, foreign=True),
    Case(method="POST", path="/v1/runs/cancel", role=Role.OPERATOR, body={"agent_id": "{agent}"}, foreign=True),
    Case(method="POST", path="/v1/runs/{run_id}/cancel", role=Role.OPERATOR, foreign=True),
    # The run has not failed, which only those who may retry it are told.
    Case(method="POST", path="/v1/runs/{run_id}/retry", role=Role.OPERATOR, status=409, foreign=True),
    Case(
        method="POST",
        path="/v1/runs/{run_id}/resume",
        role=Role.OPERATOR,
        body={"tool_results": [{"tool_call_id": "{call}", "result": "sent"}]},
        foreign=True,
    ),
    Case(method="GET", path="/v1/queue", role=Role.VIEWER),
    Case(method="POST", path="/v1/queue/requeue", role=Role.OPERATOR, body={"idle_s": 900}),
    Case(method="GET", path="/v1/approvals", role=Role.VIEWER),
    Case(method="GET", path="/v1/approvals/{approval_id}", role=Role.VIEWER, foreign=True),
    Case(
        method="POST",
        path="/v1/approvals/{approval_id}",
        role=Role.OPERATOR,
        body={"decision": "deny", "reason": "hello"},
        foreign=True,
    ),
    Case(
        method="POST", path="/v1/webhook-deliveries/{delivery_id}/retry", role=Role.OPERATOR, status=202, foreign=True
    ),
    Case(method="GET", path="/v1/usage", role=Role.VIEWER),
    Case(method="GET", path="/v1/organization", role=Role.VIEWER),
    Case(method="PATCH", path="/v1/organization", role=Role.ADMIN, body={"name": "renamed"}),
    Case(method="GET", path="/v1/audit-events", role=Role.VIEWER),
    Case(method="GET", path="/v1/audit-events/export", role=Role.VIEWER),
    Case(method="GET", path="/v1/audit-events/verify", role=Role.VIEWER),
    Case(method="POST", path="/v1/api-keys", role=Role.ADMIN, status=201, body={"name": "new", "role": "viewer"}),
    Case(method="GET", path="/v1/api-keys", role=Role.ADMIN),
    *OF_PEOPLE,
    *OF_REGISTRIES,
    *OF_RUNS,
    *OF_SERVERS_AND_WEBHOOKS,
    Case(method="POST", path="/v1/sign-in-links", role=Role.VIEWER, status=201),
    Case(method="GET", path="/v1/gateway-sessions", role=Role.RUNNER),
    Case(
        method="POST",
        path="/v1/gateway-sessions",
        role=Role.OPERATOR,
        status=201,
        body={"agent_id": "{agent}"},
        foreign=True,
    ),
    Case(
        method="DELETE",
        path="/v1/gateway-sessions/{gateway_session}",
        role=Role.OPERATOR,
        status=204,
        foreign=True,
    ),
    Case(method="POST", path="/v1/users/{user_id}/impersonation", role=Role.ADMIN, status=201, body=WHY, platform=True),
    Case(method="GET", path="/v1/users/{user_id}/impersonation", role=Role.ADMIN),
    Case(method="GET", path="/v1/sessions", role=Role.VIEWER),
    Case(method="DELETE", path="/v1/sessions/{session_id}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/sessions/end-all", role=Role.VIEWER, body={}),
    Case(method="DELETE", path="/v1/api-keys/{key_id}", role=Role.ADMIN, foreign=True),
    Case(method="POST", path="/v1/secrets", role=Role.ADMIN, status=201, body={"name": "NEW", "value": "a value"}),
    Case(method="GET", path="/v1/secrets", role=Role.ADMIN),
    Case(method="DELETE", path="/v1/secrets/{secret}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/workflows", role=Role.ADMIN, status=201, body=WORKFLOW_BODY),
    Case(method="GET", path="/v1/workflows", role=Role.VIEWER),
    Case(method="POST", path="/v1/workflows/validate", role=Role.ADMIN, body=WORKFLOW_BODY),
    Case(method="GET", path="/v1/workflows/{workflow}", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/workflows/{workflow}/diagram", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/workflows/{workflow}/versions", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/workflows/{workflow}", role=Role.ADMIN, body={"name": "renamed"}, foreign=True),
    Case(method="DELETE", path="/v1/workflows/{workflow}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/workflows/{workflow}/runs", role=Role.RUNNER, status=202, body={}, foreign=True),
    Case(method="GET", path="/v1/workflow-runs", role=Role.VIEWER),
    Case(method="GET", path="/v1/workflow-runs/{workflow_run}", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/workflow-runs/{workflow_run}/diagram", role=Role.VIEWER, foreign=True),
    Case(method="GET", path="/v1/workflow-runs/{workflow_run}/stream", role=Role.VIEWER, foreign=True),
    Case(method="POST", path="/v1/workflow-runs/{workflow_run}/cancel", role=Role.OPERATOR, foreign=True),
    Case(
        method="POST",
        path="/v1/workflow-runs/{workflow_run}/replay",
        role=Role.OPERATOR,
        status=202,
        body={"node_id": "start"},
        foreign=True,
    ),
    # The run does not wait, which only those who may answer are told.
    Case(
        method="POST",
        path="/v1/workflow-runs/{workflow_run}/resume",
        role=Role.OPERATOR,
        status=409,
        body={"answers": [{"node_id": "ask", "answer": "sent"}]},
        foreign=True,
    ),
    Case(method="POST", path="/v1/secrets/rotate", role=Role.ADMIN, platform=True),
    Case(
        method="POST", path="/v1/model-providers", role=Role.ADMIN, status=201, body={"name": "new", "kind": "openai"}
    ),
    Case(method="GET", path="/v1/model-providers", role=Role.VIEWER),
    Case(method="GET", path="/v1/model-providers/{provider}", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/model-providers/{provider}", role=Role.ADMIN, body={"api_key": None}, foreign=True),
    Case(method="POST", path="/v1/model-providers/{provider}/test", role=Role.ADMIN, body={}, foreign=True),
    Case(method="GET", path="/v1/model-providers/{provider}/models", role=Role.VIEWER, foreign=True),
    Case(method="DELETE", path="/v1/model-providers/{provider}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/schedules", role=Role.ADMIN, status=201, body=SCHEDULE_BODY, foreign=True),
    Case(method="GET", path="/v1/schedules", role=Role.VIEWER),
    Case(method="GET", path="/v1/schedules/{schedule}", role=Role.VIEWER, foreign=True),
    Case(method="PATCH", path="/v1/schedules/{schedule}", role=Role.ADMIN, body={"enabled": False}, foreign=True),
    Case(method="DELETE", path="/v1/schedules/{schedule}", role=Role.ADMIN, status=204, foreign=True),
    Case(method="POST", path="/v1/organizations", role=Role.ADMIN, status=201, body={"name": "new"}, platform=True),
    Case(method="GET", path="/v1/organizations", role=Role.ADMIN, platform=True),
    Case(method="GET", path="/v1/organizations/{organization_id}", role=Role.ADMIN, platform=True),
    Case(
        method="PATCH",
        path="/v1/organizations/{organization_id}",
        role=Role.ADMIN,
        body={"mcp_enabled": False},
        platform=True,
    ),
    Case(
        method="POST",
        path="/v1/organizations/{organization_id}/api-keys",
        role=Role.ADMIN,
        status=201,
        body={"name": "second admin"},
        platform=True,
    ),
]


SECRETIVE = ("guide", "busy", "files", "Says it again", "sent", "hello")
"""What is in ORG's things and must not come with a refusal."""
REFUSALS = {"role_insufficient", "run_not_yours", "thread_not_yours", "platform_key_required", "impersonation_refused"}
_LAST_USE = re.compile(r'"last_used_at":(null|"[^"]*")')


@pytest.fixture
async def names(service: Service, team: str | None) -> dict[str, str]:
    """What the placeholders of paths stand for: one thing of ORG each, made by its admin."""
    server = await service.call("POST", "/v1/mcp-servers", json={**SERVER_BODY, "slug": "files", "team": team})
    await service.call("POST", "/v1/mcp-servers/files/refresh")
    agent = await service.call("POST", "/v1/agents", json={**AGENT_BODY, "name": "guide", "team": team})
    # The run stands on a thread of its own, so that the other thread is free and the agent's other
    # names too.
    busy = await service.call("POST", "/v1/agents", json={**AGENT_BODY, "name": "busy", "team": team})
    await service.call("POST", "/v1/secrets", json={"name": "ONLY_HERE", "value": "a value"})
    workflow = await service.call("POST", "/v1/workflows", json={**WORKFLOW_BODY, "name": "only ours", "team": team})
    begun = await service.call("POST", f"/v1/workflows/{workflow.json()['id']}/runs", json={"input": "hello"})
    asked = (await service.call("POST", f"/v1/workflow-runs/{begun.json()['id']}/cancel")).json()
    provider = {"name": "only-here", "kind": "openai", "api_key": "sk-nobody-sees"}
    await service.call("POST", "/v1/model-providers", json=provider)
    idp = await service.call("POST", "/v1/identity-providers", json={**IDP_BODY, "name": "ours", "client_id": "other"})
    ann = a_user(provider_id=idp.json()["id"])
    user = await service.stores.user_access.add(ann, an_audit_event(1, action=AuditAction.USER_CREATED))
    await service.call("POST", "/v1/groups", json={"name": "leads", "members": [user.id]})
    await service.stores.console_sessions.add(browser := a_console_session())
    await service.call("POST", "/v1/roles", json={"name": "night-shift", "permissions": ["runs.start"]})
    service.worker.act = Act.ASK
    announced = {"agent": busy.json()["id"], "input": "hello", "webhook": "https://hooks.example.com/"}
    run = (await service.call("POST", "/v1/runs", json=announced)).json()
    service.worker.act = Act.FINISH
    waiting = (await service.call("GET", f"/v1/runs/{run['id']}")).json()
    service.worker.act = Act.APPROVE
    asking = (await service.call("POST", "/v1/runs", json={"agent": busy.json()["id"], "input": "hello"})).json()
    asking = (await service.call("GET", f"/v1/runs/{asking['id']}")).json()
    service.worker.act = Act.FINISH
    source = await service.call("POST", f"/v1/threads/{run['thread_id']}/sources?name=here.txt", content=b"hello")
    schedule = await service.call("POST", "/v1/schedules", json={**SCHEDULE_BODY, "name": "nightly"})
    deliveries = await service.call("GET", f"/v1/runs/{run['id']}/webhook-deliveries")
    session = await service.call("POST", "/v1/gateway-sessions", json={"agent_id": busy.json()["id"]})
    return {
        "gateway_session": session.json()["id"],
        "delivery_id": deliveries.json()["data"][0]["id"],
        "source_id": source.json()["id"],
        "agent": agent.json()["id"],
        "server": server.json()["id"],
        "tool": "echo",
        "name": "send_email",
        "thread_id": (await service.call("POST", "/v1/threads", json={"team": team})).json()["id"],
        "run_id": run["id"],
        "call": waiting["pending"][0]["id"],
        "approval_id": asking["pending"][0]["approval_id"],
        "key_id": "key_viewer",
        "identity_provider": "ours",
        "user_id": user.id,
        "session_id": browser.id,
        "group": "leads",
        "role": "night-shift",
        "secret": "ONLY_HERE",
        "workflow": workflow.json()["id"],
        "workflow_run": asked["id"],
        "provider": "only-here",
        "schedule": schedule.json()["id"],
        "organization_id": ORG,
    }


def _filled(value: object, names: dict[str, str]) -> object:
    match value:
        case str():
            for name, meaning in names.items():
                value = value.replace(f"{{{name}}}", meaning)
            return value
        case dict():
            return {key: _filled(entry, names) for key, entry in value.items()}
        case list():
            return [_filled(entry, names) for entry in value]
        case _:
            return value


def test_every_route_below_v1_is_in_the_table(service: Service) -> None:
    served = {
        f"{method} {route.path_format}"
        for route in service.app.routes
        if isinstance(route, HTTPRoute) and route.path.startswith("/v1")
        for method in route.methods
        if method != "OPTIONS"
    }
    assert served == {str(case) for case in CASES}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("token", [None, "dgm_unknown", "secret"])
async def test_without_a_known_key_every_route_answers_401(service: Service, token: str | None) -> None:
    for case in CASES:
        response = await service.call(case.method, case.path, content=b"{not even json", token=token)
        problem_of(response, 401, "token_missing" if token is None else "token_invalid")
        assert response.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_every_route_takes_the_role_it_is_for_and_refuses_lower_ones(
    service: Service, names: dict[str, str], case: Case
) -> None:
    path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
    before = await _everything(service)
    for role in Role:
        if role is case.role and not case.platform:
            break
        response = await service.call(case.method, path, json=body, token=token_of(role))
        assert response.status_code == 403
        assert response.json()["code"] in REFUSALS
        assert await _everything(service) == before
    able = PLATFORM if case.platform else token_of(case.role)
    response = await service.call(case.method, path, json=body, token=able)
    assert response.status_code == case.status, response.text


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("case", CASES, ids=str)
async def test_every_route_takes_the_roles_above_the_one_it_is_for(
    service: Service, names: dict[str, str], case: Case
) -> None:
    path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
    highest = PLATFORM if case.platform else token_of(Role.ADMIN)
    response = await service.call(case.method, path, json=body, token=highest)
    assert response.status_code == case.status, response.text


@pytest.mark.requirement("C6")
async def test_what_belongs_to_another_organization_is_not_found(service: Service, names: dict[str, str]) -> None:
    before = await _everything(service)
    for case in CASES:
        if case.foreign:
            path, body = str(_filled(case.path + case.query, names)), _filled(case.body, names)
            response = await service.call(case.method, path, json=body, token=OTHER_ADMIN)
            assert response.status_code == 404, str(case)
            assert response.headers["content-type"] == "application/problem+json"
            sent = f"{path} {body}"
            assert not [known for known in SECRETIVE if known in response.text and known not in sent], str(case)
    assert await _everything(service) == before


@pytest.mark.requirement("C6")
async def test_lists_show_nothing_of_another_organization(service: Service, names: dict[str, str]) -> None:
    for case in CASES:
        if case.method == "GET" and "{" not in case.path:
            shown = (await service.call("GET", case.path, token=OTHER_ADMIN)).text
            # A native tool's name is everybody's.
            own = [identifier for placeholder, identifier in names.items() if placeholder != "name"]
            assert not [identifier for identifier in own if identifier in shown], str(case)


@pytest.mark.requirement("C6")
async def test_a_revoked_key_is_refused_at_its_next_request_on_every_route(service: Service) -> None:
    created = (await service.call("POST", "/v1/api-keys", json={"name": "ci", "role": "admin"})).json()
    assert (await service.call("GET", "/v1/agents", token=created["token"])).status_code == 200
    await service.call("DELETE", f"/v1/api-keys/{created['id']}")
    for case in CASES:
        response = await service.call(case.method, case.path, token=created["token"])
        problem_of(response, 401, "token_invalid")


@pytest.mark.parametrize("header", ["Bearer", "Bearer  ", "Basic ZGdtX2FkbWluOg==", "dgm_admin"])
async def test_other_ways_to_authorize_are_refused(service: Service, header: str) -> None:
    response = await service.call("GET", "/v1/agents", token=None, headers={"Authorization": header})
    problem_of(response, 401, "token_missing")


async def test_the_scheme_is_read_without_regard_to_case(service: Service) -> None:
    headers = {"Authorization": f"bearer {token_of(Role.VIEWER)}"}
    assert (await service.call("GET", "/v1/agents", token=None, headers=headers)).status_code == 200


async def _everything(service: Service) -> list[str]:
    """All that ORG has, as its admin reads it."""
    paths = ["/v1/agents", "/v1/mcp-servers", "/v1/threads", "/v1/runs", "/v1/api-keys", "/v1/audit-events"]
    shown = [(await service.call("GET", path)).text for path in paths]
    return [_LAST_USE.sub("", text) for text in shown]
