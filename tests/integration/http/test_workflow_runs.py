"""Runs of workflows over HTTP: idempotency keys, runs that wait for what their agents wait for, and
what is refused."""

from dataclasses import replace
from typing import cast

import pytest

from domain.identity.role import Role
from domain.ids import RunId, WorkerId, WorkflowRunId
from domain.workflows.execution import NodeRun
from tests.builders import ORG, START
from tests.composition import MODEL
from tests.integration.http.service import Act, Service, paths_of, problem_of, token_of

ASKING: dict[str, object] = {
    "name": "asking",
    "nodes": [
        {"id": "start", "kind": "entrypoint", "config": {"schema": {"type": "object"}}},
        {"id": "buyer", "kind": "agent", "config": {"agent": "guide"}},
    ],
    "edges": [{"source": "start", "target": "buyer"}],
}
RUNS = "/v1/workflows/asking/runs"
IN_FULL_ONLY = {"input", "output", "pending", "nodes"}
JsonAnswer = dict[str, object]


@pytest.fixture
async def stocked(service: Service) -> Service:
    """A service with a workflow."""
    await service.call("POST", "/v1/agents", json={"name": "guide", "model": MODEL})
    assert (await service.call("POST", "/v1/workflows", json=ASKING)).status_code == 201
    return service


@pytest.mark.requirement("E5", "F4")
async def test_the_same_idempotency_key_gives_the_same_run(stocked: Service) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = await stocked.call("POST", RUNS, json={"input": {"a": 1, "b": 2}}, headers=key)
    assert (first.status_code, "idempotent-replayed" in first.headers) == (202, False)
    again = await stocked.call("POST", RUNS, json={"input": {"b": 2, "a": 1}}, headers=key)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    assert stocked.worker.workflow_runs.count(first.json()["id"]) == 1

    for path, body in ((RUNS, {"input": {"a": 3}}), ("/v1/workflows/other/runs", {"input": {"a": 1, "b": 2}})):
        refused = await stocked.call("POST", path, json=body, headers=key)
        assert paths_of(problem_of(refused, 422, "idempotency_key_reused")) == ["Idempotency-Key"]
    other = await stocked.call("POST", RUNS, json={"input": {"a": 3}}, headers={"Idempotency-Key": "k-2"})
    assert other.json()["id"] != first.json()["id"]
    listed = (await stocked.call("GET", "/v1/workflow-runs")).json()["data"]
    whole, found = first.json(), {run["id"]: run for run in listed}
    assert set(found) == {other.json()["id"], whole["id"]}
    assert found[whole["id"]] == {name: value for name, value in whole.items() if name not in IN_FULL_ONLY}


async def test_a_key_counts_whatever_became_of_its_workflow(stocked: Service) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = await stocked.call("POST", RUNS, json={"input": {}}, headers=key)
    await stocked.call("DELETE", "/v1/workflows/asking")
    again = await stocked.call("POST", RUNS, json={"input": {}}, headers=key)
    assert again.json()["id"] == first.json()["id"]
    problem_of(await stocked.call("POST", RUNS, json={"input": {}}), 404, "workflow_not_found")


@pytest.mark.parametrize("key", ["", "x" * 256])
async def test_a_key_that_is_none_is_refused(stocked: Service, key: str) -> None:
    refused = await stocked.call("POST", RUNS, json={}, headers={"Idempotency-Key": key})
    assert refused.status_code == 422


# --- waiting for an agent ---


async def waiting_for_agent(service: Service, act: Act) -> tuple[str, JsonAnswer]:
    """A workflow run that waits for what the run of its agent waits for; its id, and that run."""
    service.worker.act = act
    begun = (await service.call("POST", RUNS, json={"input": {}})).json()
    run = (await service.call("POST", "/v1/runs", json={"agent": "guide", "input": "Buy."})).json()
    run = (await service.call("GET", f"/v1/runs/{run['id']}")).json()
    assert run["status"] == "requires_action"
    stored = await service.stores.runs.get(ORG, RunId(run["id"]))
    assert stored is not None
    journal = service.stores.workflow_journal
    claimed = await journal.claim(WorkflowRunId(begun["id"]), WorkerId("w"), lease_s=10, at=START)
    assert claimed is not None
    node = replace(NodeRun(node_id="buyer").started(at=START), run_id=stored.id)
    asked = node.waiting(due_at=None, asked={"calls": run["pending"]}, run_seq=stored.last_seq)
    waiting = replace(claimed.run, nodes={"buyer": asked}).suspended(wake_at=None)
    await journal.commit(claimed.lease, waiting, at=START)
    service.worker.workflow_runs.clear()
    return cast(str, begun["id"]), run


@pytest.mark.requirement("F4", "C3")
async def test_what_an_agent_waits_for_is_named_and_deciding_it_lets_the_workflow_go_on(stocked: Service) -> None:
    run_id, run = await waiting_for_agent(stocked, Act.APPROVE)
    shown = (await stocked.call("GET", f"/v1/workflow-runs/{run_id}")).json()
    calls = cast("list[dict[str, object]]", run["pending"])
    assert shown["status"] == "requires_action"
    assert shown["pending"] == [{"node_id": "buyer", "run_id": run["id"], "asked": {"calls": calls}}]
    assert "approval_id" in calls[0]

    streamed = await stocked.call("GET", f"/v1/workflow-runs/{run_id}/stream")
    assert '"status":"requires_action"' in streamed.text
    assert str(calls[0]["approval_id"]) in streamed.text

    stocked.worker.act = Act.REST
    path = f"/v1/workflow-runs/{run_id}/resume"
    decision = {"tool_call_id": calls[0]["id"], "decision": "approve"}
    body = {"node_id": "buyer", "approvals": [decision]}
    problem_of(await stocked.call("POST", path, json=body, token=token_of(Role.RUNNER)), 403, "run_not_yours")
    resumed = await stocked.call("POST", path, json=body)
    assert (resumed.status_code, resumed.json()["status"]) == (200, "queued")
    assert stocked.worker.workflow_runs == [run_id]
    assert (await stocked.call("GET", f"/v1/runs/{run['id']}")).json()["status"] == "queued"
    problem_of(await stocked.call("POST", path, json=body), 409, "approval_decided")


async def test_results_of_displayed_tools_are_given_through_the_workflow_run(stocked: Service) -> None:
    run_id, run = await waiting_for_agent(stocked, Act.ASK)
    stocked.worker.act = Act.FINISH
    call_id = cast("list[dict[str, object]]", run["pending"])[0]["id"]
    body = {"node_id": "buyer", "tool_results": [{"tool_call_id": call_id, "result": "sent"}]}
    resumed = await stocked.call("POST", f"/v1/workflow-runs/{run_id}/resume", json=body)
    assert resumed.json()["status"] == "queued"
    assert (await stocked.call("GET", f"/v1/runs/{run['id']}")).json()["status"] == "completed"


@pytest.mark.parametrize(
    ("body", "status", "code", "paths"),
    [
        ({}, 422, "answers_invalid", ["answers"]),
        ({"answers": [{"node_id": "buyer", "answer": 1}], "node_id": "buyer"}, 422, "answers_invalid", ["node_id"]),
        ({"answers": [{"node_id": "buyer", "answer": 1}]}, 409, "node_not_waiting", None),
        ({"approvals": [{"tool_call_id": "c", "decision": "approve"}]}, 422, "body_invalid", ["node_id"]),
        ({"node_id": "start", "tool_results": [{"tool_call_id": "c", "result": 1}]}, 409, "node_not_waiting", None),
        ({"node_id": "buyer"}, 422, "tool_results_invalid", ["tool_results"]),
        (
            {"node_id": "buyer", "tool_results": [{"tool_call_id": "c", "result": 1}]},
            422,
            "tool_call_not_pending",
            None,
        ),
    ],
)
async def test_what_does_not_fit_what_is_waited_for_is_refused(
    stocked: Service, body: dict[str, object], status: int, code: str, paths: list[str] | None
) -> None:
    run_id, _ = await waiting_for_agent(stocked, Act.APPROVE)
    problem = problem_of(await stocked.call("POST", f"/v1/workflow-runs/{run_id}/resume", json=body), status, code)
    if paths is not None:
        assert paths_of(problem) == paths
    assert (await stocked.call("GET", f"/v1/workflow-runs/{run_id}")).json()["status"] == "requires_action"


async def test_stopping_it_is_left_to_a_worker_while_its_agent_has_a_run(stocked: Service) -> None:
    run_id, _ = await waiting_for_agent(stocked, Act.APPROVE)
    stopped = await stocked.call("POST", f"/v1/workflow-runs/{run_id}/cancel")
    assert (stopped.status_code, stopped.json()["status"]) == (200, "queued")
    assert stocked.worker.workflow_runs == [run_id]


@pytest.mark.requirement("F4", "U6")
async def test_a_run_is_replayed_from_a_node_with_what_was_done_before_it(stocked: Service) -> None:
    first = (await stocked.call("POST", RUNS, json={"input": {"a": 1}})).json()["id"]
    path = f"/v1/workflow-runs/{first}/replay"
    replayed = await stocked.call("POST", path, json={"node_id": "buyer"})
    assert replayed.status_code == 202
    assert replayed.headers["location"] == f"/v1/workflow-runs/{replayed.json()['id']}"
    assert (replayed.json()["input"], replayed.json()["status"]) == ({"a": 1}, "queued")
    assert replayed.json()["id"] in stocked.worker.workflow_runs

    refused = await stocked.call("POST", path, json={"node_id": "gone"})
    assert paths_of(problem_of(refused, 422, "node_not_a_step")) == ["node_id"]
    # The earlier run is queued: nothing before the node has an output.
    problem_of(await stocked.call("POST", path, json={"node_id": "buyer", "alone": True}), 409, "node_input_missing")
    assert (await stocked.call("POST", path, json={"node_id": "buyer"}, token=token_of(Role.VIEWER))).status_code == 403
