"""What a runner may do with runs: all with its own, nothing with those of others."""

import pytest

from domain.identity.role import Role
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, problem_of, token_of


@pytest.mark.requirement("C6")
async def test_a_runner_resumes_and_cancels_the_runs_it_made_and_no_others(service: Service) -> None:
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    runner = token_of(Role.RUNNER)
    service.worker.act = Act.ASK

    async def asked_by(token: str) -> tuple[str, dict[str, object]]:
        """A run that waits for its client, and what settles its call."""
        started = await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "hello"}, token=token)
        run = (await service.call("GET", f"/v1/runs/{started.json()['id']}")).json()
        [pending] = run["pending"]
        return f"/v1/runs/{run['id']}", {"tool_results": [{"tool_call_id": pending["id"], "result": "sent"}]}

    others, given = await asked_by(token_of(Role.OPERATOR))
    for verb, body in (("resume", given), ("cancel", None)):
        response = await service.call("POST", f"{others}/{verb}", json=body, token=runner)
        problem_of(response, 403, "run_not_yours")
    assert (await service.call("GET", others)).json()["status"] == "requires_action"
    first, given = await asked_by(runner)
    resumed = await service.call("POST", f"{first}/resume", json=given, token=runner)
    assert (resumed.status_code, resumed.json()["pending"]) == (200, [])
    second, _ = await asked_by(runner)
    cancelled = await service.call("POST", f"{second}/cancel", token=runner)
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
