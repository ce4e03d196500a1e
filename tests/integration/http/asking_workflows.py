"""A workflow whose runs ask a person, for tests of the inbox."""

from dataclasses import replace

from domain.ids import WorkerId, WorkflowRunId
from domain.json_value import JsonValue
from domain.workflows.execution import NodeRun
from tests.builders import START
from tests.integration.http.service import Service

ASKING: dict[str, object] = {
    "name": "refunds",
    "nodes": [
        {"id": "start", "kind": "entrypoint"},
        {"id": "approve", "kind": "human_input", "config": {"prompt": "?"}},
    ],
    "edges": [{"source": "start", "target": "approve"}],
}


async def a_workflow(service: Service, name: str = "refunds") -> None:
    answer = await service.call("POST", "/v1/workflows", json={**ASKING, "name": name})
    assert answer.status_code == 201, answer.text


async def an_asking_run(
    service: Service, prompt: str, schema: JsonValue, *, workflow: str = "refunds", is_suspended: bool = True
) -> str:
    """A run of it that waits for the answer to this prompt. One that is not suspended executes
    other nodes meanwhile."""
    started = await service.call("POST", f"/v1/workflows/{workflow}/runs", json={"input": {"order": 17}})
    run_id = WorkflowRunId(started.json()["id"])
    journal = service.stores.workflow_journal
    claimed = await journal.claim(run_id, WorkerId("w"), lease_s=10, at=START)
    assert claimed is not None
    asked: JsonValue = {"prompt": prompt, "schema": schema}
    node = NodeRun(node_id="approve").started(at=START).waiting(due_at=None, asked=asked)
    waiting = replace(claimed.run, nodes={"approve": node})
    await journal.commit(claimed.lease, waiting.suspended(wake_at=None) if is_suspended else waiting, at=START)
    return run_id
