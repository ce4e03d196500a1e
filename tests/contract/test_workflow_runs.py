"""The contract of `WorkflowRunStore` and `WorkflowJournal`."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from application.audit.ports import AuditFilter
from application.runs.ports import LeaseLost
from application.system.pages import PageRequest
from application.workflows.ports import (
    ClaimedWorkflowRun,
    WorkflowRunFilter,
    workflow_control_topic,
    workflow_events_topic,
)
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ErrorKind, ServiceError
from domain.identity.impersonation import as_others
from domain.ids import ApiKeyId, RunId, WorkerId, WorkflowId, WorkflowRunId
from domain.workflows.execution import NodeError, NodeRun, NodeStatus
from domain.workflows.graph import Workflow
from domain.workflows.run import WorkflowEventType, WorkflowRun, WorkflowRunStatus
from tests.builders import KEY, ORG, OTHER_ORG, after, an_audit_event, numbered
from tests.contract.paging import all_of, pages_of
from tests.contract.stores import Stores
from tests.group_builders import a_group
from tests.workflow_builders import entrypoint, node, workflow
from tests.workflow_changes import answer_run, stop_run

ID = WorkflowRunId(numbered("wfr", 1))
WORKFLOW = WorkflowId(numbered("wfl", 1))
WORKER, OTHER_WORKER = WorkerId("worker_1"), WorkerId("worker_2")
DEFINITION = workflow(entrypoint(), node("ask", "human_input", prompt="?"), "start -> ask")
LEASE_S = 10.0


def told(number: int, action: AuditAction = AuditAction.WORKFLOW_RUN_STARTED) -> AuditEvent:
    return an_audit_event(number, action=action, resource=ID)


def a_run(number: int = 1) -> WorkflowRun:
    return WorkflowRun(
        id=WorkflowRunId(numbered("wfr", number)),
        organization_id=ORG,
        workflow_id=WORKFLOW,
        workflow_version=1,
        status=WorkflowRunStatus.QUEUED,
        input={"topic": "Ulm 🙂"},
        requested_by=KEY,
        created_at=after(number),
    )


@pytest.fixture
async def harness(stores: Stores) -> Stores:
    """With the workflow that is run."""
    saved = Workflow(
        id=WORKFLOW, organization_id=ORG, version=1, definition=DEFINITION, created_at=after(0), updated_at=after(0)
    )
    await stores.workflows.add(saved, an_audit_event(900, action=AuditAction.WORKFLOW_CREATED))
    return stores


async def claimed(harness: Stores, at: float = 2) -> ClaimedWorkflowRun:
    found = await harness.workflow_journal.claim(ID, WORKER, lease_s=LEASE_S, at=after(at))
    assert found is not None
    return found


async def waiting(harness: Stores) -> WorkflowRun:
    """A run whose node `ask` waits for a person."""
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness)
    asked = NodeRun(node_id="ask").started(at=after(3)).waiting(due_at=after(60), asked={"prompt": "?"})
    run = replace(taken.run, nodes={"ask": asked}).suspended(wake_at=after(60))
    return await harness.workflow_journal.commit(taken.lease, run, at=after(4))


async def types(harness: Stores) -> list[WorkflowEventType]:
    events = await harness.workflow_runs.events(ORG, ID, after_seq=0, limit=100)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    return [event.type for event in events]


async def test_a_started_run_is_queued_with_its_first_event(harness: Stores) -> None:
    stored = await harness.workflow_runs.start(a_run(), told(1))
    assert stored == replace(a_run(), last_seq=1)
    assert await harness.workflow_runs.get(ORG, ID) == stored
    assert await types(harness) == [WorkflowEventType.QUEUED]
    assert await harness.workflow_runs.definition(ORG, stored) == DEFINITION


@pytest.mark.requirement("P2")
async def test_a_run_keeps_its_team_and_is_in_lists_of_those_who_see_it(harness: Stores) -> None:
    group = an_audit_event(901, action=AuditAction.GROUP_CREATED)
    await harness.organization_groups.add(a_group("finance"), group)
    await harness.workflow_runs.start(replace(a_run(), team="finance"), told(1))
    await harness.workflow_runs.start(a_run(2), told(2))
    read = await harness.workflow_runs.get(ORG, ID)
    assert read is not None
    assert (read.team, (await claimed(harness)).run.team) == ("finance", "finance")
    found = {}
    for team in ("finance", "legal"):
        request = PageRequest(teams=frozenset({team}))
        page = await harness.workflow_runs.page(ORG, WorkflowRunFilter(workflow_id=WORKFLOW), request)
        found[team] = [run.team for run in page.items]
    assert found == {"finance": [None, "finance"], "legal": [None]}


async def test_a_run_that_takes_nodes_over_is_stored_with_them(harness: Stores) -> None:
    taken = {"start": NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, output={"a": 1})}
    stored = await harness.workflow_runs.start(replace(a_run(), nodes=taken), told(1))
    assert (await harness.workflow_runs.get(ORG, ID)) == stored
    assert stored.nodes == taken
    assert await types(harness) == [WorkflowEventType.QUEUED, WorkflowEventType.NODE_SUCCEEDED]
    claimed = await harness.workflow_journal.claim(ID, WorkerId("w"), lease_s=10, at=after(1))
    assert claimed is not None
    assert claimed.run.nodes == taken


@pytest.mark.requirement("C6")
async def test_a_run_is_its_organizations_alone(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    audit = replace(told(2), organization_id=OTHER_ORG)
    assert await harness.workflow_runs.get(OTHER_ORG, ID) is None
    assert await harness.workflow_runs.events(OTHER_ORG, ID, after_seq=0, limit=9) == ()
    assert await all_of(partial(harness.workflow_runs.page, OTHER_ORG, WorkflowRunFilter())) == ()
    stopped = await stop_run(harness.workflow_runs, OTHER_ORG, ID, actor="key_x", at=after(2), audit=audit)
    assert stopped is None
    with pytest.raises(ServiceError) as refused:
        await answer_run(harness.workflow_runs, OTHER_ORG, ID, {"ask": 1}, at=after(2), audit=audit)
    assert refused.value.kind is ErrorKind.NOT_FOUND


async def test_a_workflow_out_of_use_is_not_run_but_its_runs_know_what_they_execute(harness: Stores) -> None:
    stored = await harness.workflow_runs.start(a_run(), told(1))
    await harness.workflows.delete(ORG, WORKFLOW, told(2, AuditAction.WORKFLOW_DELETED))
    with pytest.raises(ServiceError) as refused:
        await harness.workflow_runs.start(a_run(2), told(3))
    assert refused.value.code == "workflow_not_found"
    assert await harness.workflow_runs.definition(ORG, stored) == DEFINITION


async def test_one_worker_has_a_run_at_a_time(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness)
    assert (taken.run.status, taken.run.attempt, taken.definition) == (WorkflowRunStatus.IN_PROGRESS, 1, DEFINITION)
    assert await harness.workflow_journal.claim(ID, OTHER_WORKER, lease_s=LEASE_S, at=after(3)) is None
    assert await types(harness) == [WorkflowEventType.QUEUED, WorkflowEventType.STARTED]


@pytest.mark.requirement("F4")
async def test_everything_a_worker_may_change_is_stored_with_its_events(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness)
    start = NodeRun(node_id="start").started(at=after(3)).succeeded({"a": [1, None]}, at=after(4), handle="true")
    error = NodeError(code="broken", detail="It broke.", retryable=True)
    ask = replace(NodeRun(node_id="ask").started(at=after(3)), run_id=RunId("run_1")).failed(error, at=after(5))
    run = replace(taken.run, nodes={"start": start, "ask": ask})
    ended = run.ended(WorkflowRunStatus.FAILED, at=after(5), output=[1], error=error, failed_node="ask")
    stored = await harness.workflow_journal.commit(
        taken.lease, ended, at=after(5), audit=(told(2, AuditAction.WORKFLOW_RUN_FAILED),)
    )
    assert await harness.workflow_runs.get(ORG, ID) == stored
    assert stored == replace(ended, last_seq=5)
    assert set((await types(harness))[2:4]) == {WorkflowEventType.NODE_SUCCEEDED, WorkflowEventType.NODE_FAILED}
    assert (await types(harness))[4] == WorkflowEventType.FAILED
    trail = await all_of(partial(harness.audit.page, ORG, AuditFilter()))
    assert "workflow.run_failed" in {entry.action for entry in trail}


@pytest.mark.requirement("E4", "F4")
async def test_a_worker_whose_lease_lapsed_writes_nothing_more(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    first = await claimed(harness, at=2)
    journal = harness.workflow_journal
    assert await journal.recoverable(at=after(11.9), limit=10) == ()
    assert await journal.renew(WORKER, (first.lease,), lease_s=LEASE_S, at=after(5)) == frozenset()
    assert await journal.recoverable(at=after(14.9), limit=10) == ()
    assert await journal.recoverable(at=after(15), limit=10) == (ID,)
    second = await claimed(harness, at=16)
    assert second.run.attempt == 2
    before = await harness.workflow_runs.get(ORG, ID)
    for late in (first.run, first.run.ended(WorkflowRunStatus.COMPLETED, at=after(17))):
        with pytest.raises(LeaseLost):
            await journal.commit(first.lease, late, at=after(17), audit=(told(5),))
    assert await journal.renew(WORKER, (first.lease,), lease_s=LEASE_S, at=after(17)) == {ID}
    assert await harness.workflow_runs.get(ORG, ID) == before
    assert len(await all_of(partial(harness.audit.page, ORG, AuditFilter()))) == 2


async def test_a_run_handed_back_is_taken_up_by_another(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness)
    await harness.workflow_journal.commit(taken.lease, taken.run.handed_back(), at=after(3))
    with pytest.raises(LeaseLost):
        await harness.workflow_journal.commit(taken.lease, taken.run, at=after(4))
    assert await harness.workflow_journal.claim(ID, OTHER_WORKER, lease_s=LEASE_S, at=after(4)) is not None


@pytest.mark.requirement("F4")
async def test_an_answer_lets_the_run_go_on_once(harness: Stores) -> None:
    await waiting(harness)
    answered = await answer_run(
        harness.workflow_runs, ORG, ID, {"ask": "yes"}, at=after(5), audit=told(2, AuditAction.WORKFLOW_RUN_RESUMED)
    )
    assert (answered.status, answered.wake_at) == (WorkflowRunStatus.QUEUED, None)
    assert (answered.nodes["ask"].status, answered.nodes["ask"].output) == (NodeStatus.SUCCEEDED, "yes")
    assert await types(harness) == [
        WorkflowEventType.QUEUED,
        WorkflowEventType.STARTED,
        WorkflowEventType.NODE_WAITING,
        WorkflowEventType.REQUIRES_ACTION,
        WorkflowEventType.RESUMED,
        WorkflowEventType.NODE_SUCCEEDED,
    ]
    with pytest.raises(ServiceError) as again:
        await answer_run(harness.workflow_runs, ORG, ID, {"ask": "no"}, at=after(6), audit=told(3))
    assert again.value.code == "workflow_run_not_waiting"
    assert (await claimed(harness, at=7)).run.nodes["ask"].output == "yes"


async def test_an_answer_to_what_was_not_asked_changes_nothing(harness: Stores) -> None:
    before = await waiting(harness)
    with pytest.raises(ServiceError) as refused:
        await answer_run(harness.workflow_runs, ORG, ID, {"ask": 1, "start": 2}, at=after(5), audit=told(2))
    assert refused.value.code == "node_not_waiting"
    assert await harness.workflow_runs.get(ORG, ID) == before


async def test_a_waiting_run_wakes_at_its_time(harness: Stores) -> None:
    await waiting(harness)
    journal, early, late = harness.workflow_journal, after(59.9), after(60)
    assert await journal.recoverable(at=early, limit=10) == ()
    assert await journal.claim(ID, WORKER, lease_s=LEASE_S, at=early) is None
    assert await journal.recoverable(at=late, limit=10) == (ID,)
    assert await journal.claim(ID, WORKER, lease_s=LEASE_S, at=late) is not None


async def test_stopping_a_waiting_run_ends_it_with_its_nodes(harness: Stores) -> None:
    await waiting(harness)
    audit = told(2, AuditAction.WORKFLOW_RUN_STOPPED)
    stopped = await stop_run(harness.workflow_runs, ORG, ID, actor="key_x", at=after(5), audit=audit)
    assert stopped is not None
    assert (stopped.status, stopped.cancel_requested_by) == (WorkflowRunStatus.CANCELLED, "key_x")
    assert stopped.nodes["ask"].status is NodeStatus.CANCELLED
    assert (await types(harness))[-1] == WorkflowEventType.CANCELLED
    again = await stop_run(harness.workflow_runs, ORG, ID, actor="key_y", at=after(6), audit=told(3))
    assert again == stopped
    assert len(await all_of(partial(harness.audit.page, ORG, AuditFilter()))) == 3


async def test_a_run_in_progress_is_only_asked_to_stop_and_its_worker_is_woken(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness)
    async with harness.wakeups.subscribe(workflow_control_topic(ID)) as bell:
        await stop_run(harness.workflow_runs, ORG, ID, actor="key_x", at=after(3), audit=told(2))
        assert await bell.wait(60)
    stored = await harness.workflow_journal.commit(taken.lease, taken.run, at=after(4))
    assert (stored.status, stored.cancel_requested_by) == (WorkflowRunStatus.IN_PROGRESS, "key_x")


async def test_followers_are_woken_by_what_is_stored(harness: Stores) -> None:
    async with harness.wakeups.subscribe(workflow_events_topic(ID)) as bell:
        await harness.workflow_runs.start(a_run(), told(1))
        assert await bell.wait(60)
        await claimed(harness)
        assert await bell.wait(60)


async def test_runs_are_listed_newest_first_by_workflow_and_status(harness: Stores) -> None:
    for number in (1, 2, 3):
        await harness.workflow_runs.start(a_run(number), told(number))
    await claimed(harness)
    page = partial(harness.workflow_runs.page, ORG)
    found = await pages_of(partial(page, WorkflowRunFilter(workflow_id=WORKFLOW)), limit=2)
    assert [[run.created_at - after(0) for run in runs] for runs in found] == [
        [timedelta(seconds=3), timedelta(seconds=2)],
        [timedelta(seconds=1)],
    ]
    begun = await all_of(partial(page, WorkflowRunFilter(status=WorkflowRunStatus.IN_PROGRESS)))
    assert [run.id for run in begun] == [ID]
    assert len(await all_of(partial(page, WorkflowRunFilter(requested_by=KEY, is_unfinished=True)))) == 3
    assert await all_of(partial(page, WorkflowRunFilter(requested_by=ApiKeyId("key_other")))) == ()
    assert await all_of(partial(page, WorkflowRunFilter(is_unfinished=False))) == ()
    whole = await harness.workflow_runs.get(ORG, ID)
    assert whole is not None
    assert begun == (replace(whole, input=None, output=None, nodes={}),)
    assert await all_of(partial(page, WorkflowRunFilter(workflow_id=WorkflowId("wfl_other")))) == ()


@pytest.mark.requirement("P7")
async def test_runs_that_a_key_started_acting_as_others_are_listed_with_its_own(harness: Stores) -> None:
    for number, starter in ((1, KEY), (2, f"{as_others(KEY)}usr_bob"), (3, f"{as_others(ApiKeyId('key_x'))}usr_bob")):
        await harness.workflow_runs.start(replace(a_run(number), requested_by=ApiKeyId(starter)), told(number))
    wanted = WorkflowRunFilter(requested_by=KEY, is_unfinished=True)
    found = await all_of(partial(harness.workflow_runs.page, ORG, wanted))
    assert [run.requested_by for run in found] == [f"{as_others(KEY)}usr_bob", KEY]


@pytest.mark.requirement("E4", "E7")
async def test_for_the_sole_owner_of_the_database_every_lease_has_expired(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness, at=2)
    assert await harness.workflow_journal.recoverable(at=after(3), limit=10) == ()
    assert await harness.workflow_journal.recoverable(at=after(3), limit=10, sole_owner=True) == (ID,)
    assert await harness.workflow_journal.renew(WORKER, (taken.lease,), lease_s=LEASE_S, at=after(4)) == {ID}


@pytest.mark.requirement("E4")
async def test_leases_are_renewed_together_and_each_is_lost_alone(harness: Stores) -> None:
    await harness.workflow_runs.start(a_run(), told(1))
    taken = await claimed(harness, at=2)
    gone = replace(taken.lease, run_id=WorkflowRunId("wfr_gone"))
    journal = harness.workflow_journal
    lost = await journal.renew(WORKER, (taken.lease, gone), lease_s=LEASE_S, at=after(5))
    assert lost == {gone.run_id}
    assert await journal.recoverable(at=after(5 + LEASE_S - 1), limit=10) == ()
    assert await journal.renew(WORKER, (), lease_s=LEASE_S, at=after(6)) == frozenset()
