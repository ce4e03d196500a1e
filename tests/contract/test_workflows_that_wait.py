"""The contract of workflow runs that wait for runs of agents, and of the idempotency keys of
workflow runs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.new_run import KEY_LIFETIME, IdempotencyKey
from application.workflows.ports import WORKFLOWS_TOPIC, WorkflowRunFilter
from domain.audit.event import AuditAction
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId, ThreadId, ToolCallId, WorkflowRunId
from domain.runs.run import Run
from domain.tools.wired import WiredNodes
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.graph import Workflow
from domain.workflows.run import WorkflowEventType, WorkflowRun, WorkflowRunStatus
from tests.builders import (
    KEY,
    ORG,
    OTHER_ORG,
    RUN,
    a_displayable_call,
    a_run,
    a_settled_call,
    after,
    an_audit_event,
    numbered,
)
from tests.contract.paging import all_of
from tests.contract.run_changes import cancel, resume
from tests.contract.run_steps import start_and_suspend
from tests.contract.stores import Stores
from tests.contract.test_workflow_runs import (
    DEFINITION,
    ID,
    LEASE_S,
    WORKER,
    WORKFLOW,
    claimed,
    told,
    types,
)
from tests.contract.test_workflow_runs import (
    a_run as a_workflow_run,
)
from tests.workflow_changes import answer_run, stop_run


@pytest.fixture
async def harness(run_stores: Stores) -> Stores:
    """With the workflow that is run, beside agents and threads."""
    saved = Workflow(
        id=WORKFLOW, organization_id=ORG, version=1, definition=DEFINITION, created_at=after(0), updated_at=after(0)
    )
    await run_stores.workflows.add(saved, an_audit_event(900, action=AuditAction.WORKFLOW_CREATED))
    return run_stores


async def waiting_for_agent(harness: Stores) -> tuple[WorkflowRun, Run, ToolCallId]:
    """A workflow run that waits for the run of an agent, which waits for two answers."""
    wired = WiredNodes(workflow_run_id=ID, node_ids=())
    run, calls = await start_and_suspend(harness, replace(a_run(), wired=wired), count=2)
    await harness.workflow_runs.start(a_workflow_run(), told(701))
    taken = await claimed(harness)
    node = replace(NodeRun(node_id="ask").started(at=after(3)), run_id=RUN)
    asked = node.waiting(due_at=None, asked={"calls": []}, run_seq=run.last_seq)
    suspended = replace(taken.run, nodes={"ask": asked}).suspended(wake_at=None)
    stored = await harness.workflow_journal.commit(taken.lease, suspended, at=after(4))
    return stored, run, calls[0].id


async def _an_answer(harness: Stores, call_id: ToolCallId) -> None:
    settled = replace(a_settled_call(a_displayable_call()), id=call_id)
    await resume(harness.runs, ORG, RUN, (settled,), actor=KEY, at=after(5))


async def _a_stop(harness: Stores, call_id: ToolCallId) -> None:
    await cancel(harness.runs, ORG, RUN, actor=KEY, at=after(5))


async def _a_deletion(harness: Stores, call_id: ToolCallId) -> None:
    run = await harness.runs.get(ORG, RUN)
    assert run is not None
    await _a_stop(harness, call_id)
    await harness.threads.delete(ORG, ThreadId(run.thread_id), an_audit_event(901))


@pytest.mark.requirement("F4")
async def test_a_run_that_waits_for_an_agents_run_is_stored_as_it_is_and_not_taken_up(harness: Stores) -> None:
    stored, _, _ = await waiting_for_agent(harness)
    assert await harness.workflow_runs.get(ORG, ID) == stored
    assert stored.nodes["ask"].waits_for_run == RUN
    (event,) = [
        event
        for event in await harness.workflow_runs.events(ORG, ID, after_seq=0, limit=100)
        if event.type is WorkflowEventType.REQUIRES_ACTION
    ]
    assert event.data == {"pending": [{"node_id": "ask", "run_id": RUN, "asked": {"calls": []}}]}
    journal, late = harness.workflow_journal, after(100_000)
    assert await journal.recoverable(at=late, limit=10) == ()
    assert await journal.claim(ID, WORKER, lease_s=LEASE_S, at=late) is None


HAPPENINGS = [_an_answer, _a_stop, _a_deletion]


@pytest.mark.requirement("F4")
@pytest.mark.parametrize("happens", HAPPENINGS, ids=lambda happens: happens.__name__.strip("_"))
async def test_it_is_taken_up_and_workers_are_woken_when_the_agents_run_does_not_wait_for_the_same(
    harness: Stores, happens: Callable[[Stores, ToolCallId], Awaitable[None]]
) -> None:
    _, _, call_id = await waiting_for_agent(harness)
    async with harness.wakeups.subscribe(WORKFLOWS_TOPIC) as bell:
        await happens(harness, call_id)
        assert await bell.wait(60)
    journal, now = harness.workflow_journal, after(6)
    assert await journal.recoverable(at=now, limit=10) == (ID,)
    taken = await journal.claim(ID, WORKER, lease_s=LEASE_S, at=now)
    assert taken is not None
    assert taken.run.nodes["ask"].status is NodeStatus.WAITING
    assert (await types(harness))[-1] is WorkflowEventType.RESUMED
    assert await journal.recoverable(at=now, limit=10) == ()


async def test_what_an_agents_run_waits_for_is_not_answered_as_a_question(harness: Stores) -> None:
    stored, _, _ = await waiting_for_agent(harness)
    with pytest.raises(ServiceError) as refused:
        await answer_run(harness.workflow_runs, ORG, ID, {"ask": "yes"}, at=after(5), audit=told(702))
    assert refused.value.code == "node_not_waiting"
    assert await harness.workflow_runs.get(ORG, ID) == stored


@pytest.mark.requirement("F4")
async def test_stopping_it_leaves_the_agents_run_to_the_worker_that_takes_it_up(harness: Stores) -> None:
    await waiting_for_agent(harness)
    audit = told(702, AuditAction.WORKFLOW_RUN_STOPPED)
    stopped = await stop_run(harness.workflow_runs, ORG, ID, actor="key_x", at=after(5), audit=audit)
    assert stopped is not None
    assert (stopped.status, stopped.cancel_requested_by) == (WorkflowRunStatus.QUEUED, "key_x")
    assert (await types(harness))[-1] is WorkflowEventType.REQUIRES_ACTION
    taken = await harness.workflow_journal.claim(ID, WORKER, lease_s=LEASE_S, at=after(6))
    assert taken is not None
    assert taken.run.cancel_requested_by == "key_x"


# --- idempotency keys ---


def another(number: int, *, at: float | None = None, organization_id: OrganizationId = ORG) -> WorkflowRun:
    run = replace(a_workflow_run(number), id=WorkflowRunId(numbered("wfr", number)), organization_id=organization_id)
    return run if at is None else replace(run, created_at=after(at))


DAY_S = KEY_LIFETIME.total_seconds()
ONCE = IdempotencyKey(key="once", body_digest="sha256:1")


@pytest.mark.requirement("E5", "F4")
async def test_the_same_key_with_the_same_body_gives_the_same_run_for_a_day(harness: Stores) -> None:
    first = await harness.workflow_runs.start(another(1), told(701), idempotency=ONCE)
    assert first.id == another(1).id
    assert await harness.workflow_runs.start(another(2), told(702), idempotency=ONCE) == first
    assert await harness.workflow_runs.started_before(ORG, ONCE, at=after(DAY_S)) == first
    assert len(await all_of(partial(harness.workflow_runs.page, ORG, WorkflowRunFilter()))) == 1
    assert len(await all_of(partial(harness.audit.page, ORG, AuditFilter(action="workflow.run_started")))) == 1

    late = after(1 + DAY_S)
    assert await harness.workflow_runs.started_before(ORG, ONCE, at=late) is None
    other_body = replace(ONCE, body_digest="sha256:2")
    second = await harness.workflow_runs.start(another(3, at=1 + DAY_S), told(703), idempotency=other_body)
    assert second.id == another(3).id
    assert await harness.workflow_runs.started_before(ORG, other_body, at=late) == second


@pytest.mark.requirement("E5")
async def test_the_same_key_with_another_body_is_refused_and_nothing_is_stored(harness: Stores) -> None:
    await harness.workflow_runs.start(another(1), told(701), idempotency=ONCE)
    reused = replace(ONCE, body_digest="sha256:2")
    for attempt in (
        harness.workflow_runs.start(another(2), told(702), idempotency=reused),
        harness.workflow_runs.started_before(ORG, reused, at=after(2)),
    ):
        with pytest.raises(ServiceError) as refused:
            await attempt
        assert (refused.value.code, refused.value.kind) == ("idempotency_key_reused", ErrorKind.INVALID)
    assert len(await all_of(partial(harness.workflow_runs.page, ORG, WorkflowRunFilter()))) == 1


@pytest.mark.requirement("C6")
async def test_keys_are_an_organizations_own(harness: Stores) -> None:
    await harness.workflow_runs.start(another(1), told(701), idempotency=ONCE)
    assert await harness.workflow_runs.started_before(OTHER_ORG, replace(ONCE, body_digest="x"), at=after(2)) is None


@pytest.mark.requirement("E5")
async def test_of_many_who_use_a_key_at_once_one_starts_a_run(harness: Stores) -> None:
    numbers = range(1, 9)
    started = await asyncio.gather(
        *(harness.workflow_runs.start(another(number), told(700 + number), idempotency=ONCE) for number in numbers)
    )
    assert len({run.id for run in started}) == 1
    assert len(await all_of(partial(harness.workflow_runs.page, ORG, WorkflowRunFilter()))) == 1
    begun = await all_of(partial(harness.audit.page, ORG, AuditFilter(action="workflow.run_started")))
    assert len(begun) == 1
