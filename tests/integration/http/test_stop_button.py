"""The stop button: all unfinished runs of an agent, of a server's users, of the organization."""

import pytest

from application.runs.cancel_runs import BATCH
from domain.identity.role import Role
from domain.runs.run import RunStatus
from tests.composition import MODEL
from tests.contract.run_steps import claim
from tests.integration.http.service import OTHER_ADMIN, Act, Service, paths_of, problem_of, token_of

OPERATOR = token_of(Role.OPERATOR)


async def an_agent(service: Service, name: str, *servers: str, token: str = token_of(Role.ADMIN)) -> str:
    body = {"name": name, "model": MODEL, "mcp_servers": servers}
    return str((await service.call("POST", "/v1/agents", json=body, token=token)).json()["id"])


async def a_waiting_run(service: Service, agent: str, act: Act = Act.REST, token: str = token_of(Role.ADMIN)) -> str:
    service.worker.act = act
    body = {"agent": agent, "input": "hello"}
    return str((await service.call("POST", "/v1/runs", json=body, token=token)).json()["id"])


async def statuses(service: Service, *run_ids: str) -> list[str]:
    return [(await service.call("GET", f"/v1/runs/{run_id}")).json()["status"] for run_id in run_ids]


async def pressed(service: Service, body: dict[str, object]) -> dict[str, int]:
    response = await service.call("POST", "/v1/runs/cancel", json=body, token=OPERATOR)
    assert response.status_code == 200, response.text
    counts: dict[str, int] = response.json()
    return counts


@pytest.mark.requirement("C7")
@pytest.mark.parametrize("by", ["id", "name"])
async def test_every_unfinished_run_of_an_agent_is_cancelled_and_no_other(service: Service, by: str) -> None:
    guide = await an_agent(service, "guide")
    await an_agent(service, "other")
    done = await a_waiting_run(service, "guide", Act.FINISH)
    queued = await a_waiting_run(service, "guide")
    asking = await a_waiting_run(service, "guide", Act.ASK)
    others = await a_waiting_run(service, "other")

    assert await pressed(service, {"agent_id": guide if by == "id" else "guide"}) == {"cancelled": 2, "stopping": 0}
    after = await statuses(service, done, queued, asking, others)
    assert after == ["completed", "cancelled", "cancelled", "queued"]
    assert await pressed(service, {"agent_id": guide}) == {"cancelled": 0, "stopping": 0}


@pytest.mark.requirement("A12", "C7")
async def test_a_run_in_progress_is_asked_to_stop(service: Service) -> None:
    await an_agent(service, "guide")
    run_id = await a_waiting_run(service, "guide")
    claimed = await claim(service.stores, next(iter(service.state.runs)))
    assert await pressed(service, {"all": True}) == {"cancelled": 0, "stopping": 1}
    assert await service.stores.journal.cancel_requested_by(claimed.lease) == "key_operator"
    assert await statuses(service, run_id) == [RunStatus.IN_PROGRESS.value]


@pytest.mark.requirement("C7")
async def test_runs_whose_agents_list_a_server_are_cancelled(service: Service) -> None:
    for slug in ("files", "mail"):
        body = {"slug": slug, "kind": "custom", "command": "server"}
        await service.call("POST", "/v1/mcp-servers", json=body)
    await an_agent(service, "both", "files", "mail")
    await an_agent(service, "mailer", "mail")
    with_files = await a_waiting_run(service, "both")
    without = await a_waiting_run(service, "mailer")
    assert await pressed(service, {"server": "files"}) == {"cancelled": 1, "stopping": 0}
    assert await statuses(service, with_files, without) == ["cancelled", "queued"]


@pytest.mark.requirement("C6", "C7")
async def test_all_means_all_of_ones_own_organization_however_many(service: Service) -> None:
    await an_agent(service, "guide")
    await an_agent(service, "guide", token=OTHER_ADMIN)
    mine = [await a_waiting_run(service, "guide") for _ in range(BATCH + 3)]
    theirs = await a_waiting_run(service, "guide", token=OTHER_ADMIN)
    assert await pressed(service, {"all": True}) == {"cancelled": BATCH + 3, "stopping": 0}
    assert set(await statuses(service, *mine)) == {"cancelled"}
    read = await service.call("GET", f"/v1/runs/{theirs}", token=OTHER_ADMIN)
    assert read.json()["status"] == "queued"


@pytest.mark.requirement("C5", "C7")
async def test_who_pressed_it_and_what_it_came_to_is_audited_beside_each_run(service: Service) -> None:
    guide = await an_agent(service, "guide")
    run_id = await a_waiting_run(service, "guide")
    await pressed(service, {"agent_id": "guide"})
    entries = (await service.call("GET", "/v1/audit-events?actor=key_operator")).json()["data"]
    said = {entry["action"]: entry for entry in entries}
    assert said.keys() == {"run.cancelled", "runs.cancelled"}
    assert said["run.cancelled"]["run_id"] == run_id
    assert said["runs.cancelled"]["resource"] == guide
    assert said["runs.cancelled"]["details"] == {"cancelled": 1, "stopping": 0}


@pytest.mark.parametrize("body", [{}, {"agent_id": "guide", "all": True}, {"agent_id": "a", "server": "b"}])
async def test_exactly_one_target_is_named(service: Service, body: dict[str, object]) -> None:
    refused = await service.call("POST", "/v1/runs/cancel", json=body, token=OPERATOR)
    assert paths_of(problem_of(refused, 422, "body_invalid")) == ["agent_id"]


@pytest.mark.parametrize(
    ("body", "code"), [({"agent_id": "nobody"}, "agent_not_found"), ({"server": "nothing"}, "mcp_server_not_found")]
)
async def test_what_is_not_there_cannot_be_stopped(service: Service, body: dict[str, object], code: str) -> None:
    problem_of(await service.call("POST", "/v1/runs/cancel", json=body, token=OPERATOR), 404, code)


async def test_all_is_true_or_not_there(service: Service) -> None:
    refused = await service.call("POST", "/v1/runs/cancel", json={"all": False}, token=OPERATOR)
    assert paths_of(problem_of(refused, 422, "body_invalid")) == ["all"]
