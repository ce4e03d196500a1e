"""The contract of `RetentionStore` about runs of workflows."""

from dataclasses import replace
from datetime import datetime
from functools import partial

import pytest

from application.runs.new_run import IdempotencyKey
from domain.audit.event import AuditAction
from domain.ids import WorkerId, WorkflowId, WorkflowRunId
from domain.workflows.execution import NodeRun
from domain.workflows.graph import Workflow
from domain.workflows.run import WorkflowRun, WorkflowRunStatus
from tests.builders import KEY, ORG, OTHER_ORG, START, after, an_audit_event, numbered
from tests.contract.paging import all_of
from tests.contract.stores import Stores
from tests.workflow_builders import entrypoint, workflow

BEFORE = after(1_000)
"""Everything of before may go."""
LATER = after(1_500)
WORKFLOW = WorkflowId(numbered("wfl", 1))


async def a_workflow(stores: Stores) -> None:
    saved = Workflow(
        id=WORKFLOW,
        organization_id=ORG,
        version=1,
        definition=workflow(entrypoint()),
        created_at=START,
        updated_at=START,
    )
    await stores.workflows.add(saved, an_audit_event(800, action=AuditAction.WORKFLOW_CREATED))


async def a_workflow_run(
    stores: Stores, number: int, *, ended_at: datetime | None = START, key: IdempotencyKey | None = None
) -> WorkflowRunId:
    run = WorkflowRun(
        id=WorkflowRunId(numbered("wfr", number)),
        organization_id=ORG,
        workflow_id=WORKFLOW,
        workflow_version=1,
        status=WorkflowRunStatus.QUEUED,
        input=None,
        requested_by=KEY,
        created_at=after(number),
    )
    await stores.workflow_runs.start(run, an_audit_event(800 + number), idempotency=key)
    claimed = await stores.workflow_journal.claim(run.id, WorkerId("w"), lease_s=10, at=after(number))
    assert claimed is not None
    node = NodeRun(node_id="start").started(at=START).succeeded("put out", at=START)
    changed = replace(claimed.run, nodes={"start": node})
    if ended_at is not None:
        changed = changed.ended(WorkflowRunStatus.COMPLETED, at=ended_at)
    await stores.workflow_journal.commit(claimed.lease, changed, at=START)
    return run.id


@pytest.mark.requirement("E7", "F4")
async def test_workflow_runs_go_by_their_end_oldest_first_with_nodes_and_events(run_stores: Stores) -> None:
    await a_workflow(run_stores)
    old = [await a_workflow_run(run_stores, number) for number in (1, 2, 3)]
    young = await a_workflow_run(run_stores, 4, ended_at=BEFORE)
    unfinished = await a_workflow_run(run_stores, 5, ended_at=None)
    remove = run_stores.retention.remove_workflow_runs
    assert await remove(OTHER_ORG, BEFORE, limit=9) == 0

    assert await remove(ORG, BEFORE, limit=2) == 2
    assert [await run_stores.workflow_runs.get(ORG, run_id) is None for run_id in old] == [True, True, False]
    assert await run_stores.workflow_runs.events(ORG, old[0], after_seq=0, limit=9) == ()
    assert await remove(ORG, BEFORE, limit=2) == 1
    assert await remove(ORG, BEFORE, limit=2) == 0

    kept = await run_stores.workflow_runs.get(ORG, young)
    assert kept is not None
    assert kept.nodes["start"].output == "put out"
    assert await run_stores.workflow_runs.get(ORG, unfinished) is not None
    assert await run_stores.workflows.get(ORG, WORKFLOW) is not None


async def test_a_deleted_workflow_goes_after_its_last_run(run_stores: Stores) -> None:
    await a_workflow(run_stores)
    run_id = await a_workflow_run(run_stores, 1, ended_at=BEFORE)
    await run_stores.workflows.delete(ORG, WORKFLOW, an_audit_event(850, action=AuditAction.WORKFLOW_DELETED))
    remove = run_stores.retention.remove_workflow_runs
    assert await remove(ORG, BEFORE, limit=9) == 0
    kept = await run_stores.workflow_runs.get(ORG, run_id)
    assert kept is not None
    assert (await run_stores.workflow_runs.definition(ORG, kept)).name == "story"
    assert await remove(ORG, LATER, limit=9) == 1
    versions = partial(run_stores.workflows.versions, ORG, WORKFLOW)
    assert await all_of(versions) == ()


@pytest.mark.requirement("E7")
async def test_idempotency_keys_of_workflow_runs_are_forgotten_too_and_their_runs_stay(run_stores: Stores) -> None:
    await a_workflow(run_stores)
    keys = [IdempotencyKey(key=f"key {number}", body_digest="sha256:1") for number in (1, 2, 3)]
    for number, key in enumerate(keys, start=1):
        await a_workflow_run(run_stores, number, key=key)
    forget = run_stores.retention.forget_idempotency_keys
    assert await forget(OTHER_ORG, LATER, limit=9) == 0
    assert [await forget(ORG, after(2), limit=1) for _ in range(3)] == [1, 1, 0]
    found = [await run_stores.workflow_runs.started_before(ORG, key, at=after(3)) for key in keys]
    assert [run is None for run in found] == [True, True, False]
    assert await run_stores.workflow_runs.get(ORG, WorkflowRunId(numbered("wfr", 1))) is not None
