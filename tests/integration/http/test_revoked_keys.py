"""What a revoked or expired key still sees of what it had begun to watch: nothing."""

import asyncio

import pytest

from application.runs.ports import events_topic, status_topic
from domain.identity.role import Role
from domain.ids import RunId
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, problem_of, token_of

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
        assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 204
        service.worker.act = Act.FINISH
        await service.worker.submit(RunId(run_id))
        service.wakeups.wake(events_topic(RunId(run_id)))
    answer = await asyncio.wait_for(streaming, 10)
    assert "run.completed" not in answer.text
    assert "event: end" not in answer.text


@pytest.mark.requirement("C6")
async def test_a_wait_is_refused_when_its_key_is_revoked(service: Service) -> None:
    run_id = await a_run_at_rest(service)
    waiting = asyncio.create_task(service.call("GET", f"/v1/runs/{run_id}/wait", token=VIEWER))
    await service.call("GET", "/v1/organization", token=VIEWER)
    assert (await service.call("DELETE", "/v1/api-keys/key_viewer")).status_code == 204
    service.wakeups.wake(status_topic(RunId(run_id)))
    problem_of(await asyncio.wait_for(waiting, 10), 401, "token_invalid")
