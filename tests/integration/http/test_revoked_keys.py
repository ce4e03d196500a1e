"""What a revoked or expired key still sees of what it had begun to watch: nothing."""

import asyncio

import pytest

from application.identity.key_validity import access_topic
from application.runs.ports import events_topic, status_topic
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.ids import RunId
from tests.builders import ORG, an_audit_event
from tests.composition import MODEL
from tests.integration.http.service import PLATFORM, Act, Service, problem_of, token_of
from tests.people_builders import USER, a_console_session, a_provider, a_user

VIEWER = token_of(Role.VIEWER)


async def a_run_at_rest(service: Service) -> str:
    """A run that nobody takes up."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    service.worker.act = Act.REST
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"})).json()
    return str(run["id"])


@pytest.mark.requirement("C6")
async def test_a_stream_ends_when_its_key_is_revoked(service: Service) -> None:
    run_id = await a_run_at_rest(service)
    streaming = asyncio.create_task(service.call("GET", f"/v1/runs/{run_id}/stream", token=VIEWER))
    async with service.wakeups.subscribe(events_topic(RunId(run_id))):
        await service.call("GET", "/v1/organization", token=VIEWER)
        assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 200
        service.worker.act = Act.FINISH
        await service.worker.submit(RunId(run_id))
        service.wakeups.wake(events_topic(RunId(run_id)))
    answer = await asyncio.wait_for(streaming, 60)
    assert "run.completed" not in answer.text
    assert "event: end" not in answer.text


@pytest.mark.requirement("C6")
async def test_a_wait_is_refused_when_its_key_is_revoked(service: Service) -> None:
    run_id = await a_run_at_rest(service)
    waiting = asyncio.create_task(service.call("GET", f"/v1/runs/{run_id}/wait", token=VIEWER))
    await service.call("GET", "/v1/organization", token=VIEWER)
    assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 200
    service.wakeups.wake(status_topic(RunId(run_id)))
    problem_of(await asyncio.wait_for(waiting, 60), 401, "token_invalid")


@pytest.mark.requirement("C6", "P2")
async def test_who_watches_is_woken_when_the_access_of_callers_changes(service: Service) -> None:
    run_id = await a_run_at_rest(service)
    assert (await service.call("GET", f"/v1/runs/{run_id}/wait?timeout_s=0", token=VIEWER)).status_code == 200
    async with service.wakeups.subscribe(access_topic(ORG), access_topic(None)) as woken:
        assert not await woken.wait(0)
        assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 200
        assert await woken.wait(60)


@pytest.mark.requirement("C6", "P2")
@pytest.mark.parametrize("end", ["session", "group", "impersonation"])
async def test_who_watches_is_woken_when_what_they_watch_with_ends(service: Service, end: str) -> None:
    run_id = await a_run_at_rest(service)
    assert (await service.call("GET", f"/v1/runs/{run_id}/wait?timeout_s=0", token=VIEWER)).status_code == 200
    await service.stores.identity_providers.add(a_provider(), an_audit_event(1))
    await service.stores.user_access.add(a_user(), an_audit_event(2, action=AuditAction.USER_CREATED))
    match end:
        case "session":
            session = a_console_session(holder="key_viewer")
            await service.stores.console_sessions.add(session)
            path = f"/v1/sessions/{session.id}"
        case "group":
            group = await service.call("POST", "/v1/groups", json={"name": "sales", "members": [USER]})
            path = f"/v1/groups/{group.json()['id']}"
        case _:
            begun = await service.call(
                "POST", f"/v1/users/{USER}/impersonation", json={"reason": "Ticket 4711"}, token=PLATFORM
            )
            path = f"/v1/sessions/{begun.json()['id']}"
    async with service.wakeups.subscribe(access_topic(ORG)) as woken:
        assert not await woken.wait(0)
        assert (await service.call("DELETE", path)).status_code in (200, 204)
        assert await woken.wait(60)


@pytest.mark.requirement("C6")
async def test_what_a_key_started_ends_with_it_and_its_number_is_told(service: Service) -> None:
    for role in (Role.RUNNER, Role.ADMIN):
        await service.call("POST", "/v1/agents", json={"name": f"of-{role}", "model": MODEL})
    service.worker.act = Act.REST
    operator = token_of(Role.OPERATOR)
    started = [
        (await service.call("POST", "/v1/runs", json={"agent": "of-admin", "input": "hello"}, token=token)).json()
        for token in (operator, operator, token_of(Role.RUNNER))
    ]
    session = await service.call("POST", "/v1/gateway-sessions", json={"agent_id": "of-runner"}, token=operator)
    workflow = {"name": "story", "nodes": [{"id": "start", "kind": "entrypoint"}], "edges": []}
    await service.call("POST", "/v1/workflows", json=workflow)
    of_workflow = (await service.call("POST", "/v1/workflows/story/runs", json={}, token=operator)).json()

    revoked = await service.call("DELETE", "/v1/api-keys/key_operator")

    assert revoked.json() == {
        "id": "key_operator",
        "cancelled_runs": 2,
        "cancelled_workflow_runs": 1,
        "revoked_gateway_sessions": 1,
    }
    stored = [(await service.call("GET", f"/v1/runs/{run['id']}")).json()["status"] for run in started]
    assert stored == ["cancelled", "cancelled", "queued"]
    ended = (await service.call("GET", f"/v1/workflow-runs/{of_workflow['id']}")).json()
    assert ended["status"] == "cancelled"
    sessions = (await service.call("GET", "/v1/gateway-sessions")).json()["data"]
    assert [bool(each["revoked_at"]) for each in sessions if each["id"] == session.json()["id"]] == [True]
    again = (await service.call("DELETE", "/v1/api-keys/key_operator")).json()
    assert [again["cancelled_runs"], again["cancelled_workflow_runs"], again["revoked_gateway_sessions"]] == [0, 0, 0]
