"""The queue over HTTP and in the console: lines, cancelling what waits, requeuing what no longer
progresses."""

import re

import pytest

from domain.identity.role import Role
from tests.contract.run_steps import claim
from tests.integration.http.service import OTHER_ADMIN, PLATFORM, Service, problem_of, token_of
from tests.integration.http.test_console import browse, signed_in
from tests.integration.http.test_stop_button import a_waiting_run, an_agent, pressed, statuses

OPERATOR = token_of(Role.OPERATOR)


@pytest.mark.requirement("K8")
async def test_the_queue_shows_the_lines_of_its_organization_and_all_to_platform_keys(service: Service) -> None:
    guide = await an_agent(service, "guide")
    theirs = await an_agent(service, "theirs", token=OTHER_ADMIN)
    await a_waiting_run(service, "guide")
    await a_waiting_run(service, "guide")
    await a_waiting_run(service, "theirs", token=OTHER_ADMIN)
    await claim(service.stores, next(iter(service.state.runs)))
    queue = (await service.call("GET", "/v1/queue", token=token_of(Role.VIEWER))).json()
    assert (queue["queued"], queue["running"]) == (1, 1)
    [line] = queue["lines"]
    assert (line["agent_id"], line["lane"], line["queued"], line["running"]) == (guide, "normal", 1, 1)
    assert line["oldest_queued_at"] == queue["oldest_queued_at"] is not None
    refused = await service.call("GET", "/v1/queue?all=true")
    problem_of(refused, 403, "platform_key_required")
    every = (await service.call("GET", "/v1/queue?all=true", token=PLATFORM)).json()
    assert {line["agent_id"] for line in every["lines"]} == {guide, theirs}


@pytest.mark.requirement("K8")
async def test_what_waits_in_a_lane_is_cancelled_and_the_rest_stays(service: Service) -> None:
    await an_agent(service, "guide")
    running, normal = await a_waiting_run(service, "guide"), await a_waiting_run(service, "guide")
    await claim(service.stores, next(iter(service.state.runs)))
    batch = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "x", "lane": "batch"})).json()
    assert await pressed(service, {"all": True, "queued": True, "lane": "batch"}) == {"cancelled": 1, "stopping": 0}
    assert await statuses(service, running, normal, batch["id"]) == ["in_progress", "queued", "cancelled"]
    assert await pressed(service, {"agent_id": "guide", "queued": True}) == {"cancelled": 1, "stopping": 0}
    assert await statuses(service, running, normal) == ["in_progress", "cancelled"]


@pytest.mark.requirement("K8")
async def test_a_run_without_events_is_taken_from_its_worker(service: Service) -> None:
    await an_agent(service, "guide")
    run_id = await a_waiting_run(service, "guide")
    await claim(service.stores, next(iter(service.state.runs)))
    body = {"idle_s": 60, "agent_id": "guide"}
    answer = await service.call("POST", "/v1/queue/requeue", json=body, token=OPERATOR)
    assert (answer.status_code, answer.json()) == (200, {"run_ids": []}), "it has just begun"
    service.clock.advance(3600)
    answer = await service.call("POST", "/v1/queue/requeue", json=body, token=OPERATOR)
    assert answer.json() == {"run_ids": [run_id]}
    assert await statuses(service, run_id) == ["queued"]
    refused = await service.call("POST", "/v1/queue/requeue", json=body, token=token_of(Role.RUNNER))
    problem_of(refused, 403, "role_insufficient")


@pytest.mark.requirement("K8")
async def test_the_console_shows_the_lines_and_cancels_what_waits_in_one(service: Service) -> None:
    await an_agent(service, "guide")
    run_id = await a_waiting_run(service, "guide")
    viewer = await browse(service, "GET", "/console/queue", headers=await signed_in(service, token_of(Role.VIEWER)))
    assert "guide" in viewer.text
    assert "Cancel queued runs" not in viewer.text
    browser = await signed_in(service, OPERATOR)
    page = (await browse(service, "GET", "/console/parts/queue", headers=browser)).text
    fields = dict(re.findall(r'name="(agent_id|lane)" value="([^"]+)"', page))
    answer = await browse(service, "POST", "/console/queue/cancel", headers=browser, data=fields)
    assert "1 cancelled" in answer.text
    assert await statuses(service, run_id) == ["cancelled"]
    empty = await browse(service, "GET", "/console/queue", headers=browser)
    assert "No run is queued or in progress." in empty.text
    assert 'are among them. <a href="/docs/guides/queue">How the queue works</a>.' in empty.text
