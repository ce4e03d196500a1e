"""Reading workflow runs: GetWorkflowRun, ListWorkflowRuns."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.identity.key_validity import KeyValidity
from application.system.pages import PageRequest
from application.workflows.ports import WorkflowRunFilter, WorkflowRunStore
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns, WatchWorkflowRun
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import WorkflowId, WorkflowRunId
from domain.workflows.execution import NodeRun, NodeStatus
from domain.workflows.run import WorkflowEvent, WorkflowEventType, WorkflowRun, WorkflowRunStatus
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import OTHER_ORG, after
from tests.doubles.state import InMemoryState
from tests.doubles.stored_workflow_run import StoredWorkflowRun
from tests.doubles.workflow_runs import InMemoryWorkflowRunStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.workflow_builders import a_workflow, a_workflow_run, entrypoint

DONE = NodeRun(node_id="start", status=NodeStatus.SUCCEEDED, output="in", attempt=1)
RUN = a_workflow_run(DONE, status=WorkflowRunStatus.COMPLETED, input="in")
NEWER = replace(a_workflow_run(id=WorkflowRunId("wfr_2")), created_at=after(9))
OF_ANOTHER_WORKFLOW = replace(
    a_workflow_run(id=WorkflowRunId("wfr_3")), created_at=after(5), workflow_id=WorkflowId("wfl_2")
)
FOREIGN = a_workflow_run(id=WorkflowRunId("wfr_4"), organization_id=OTHER_ORG)


@pytest.fixture
def runs() -> InMemoryWorkflowRunStore:
    """Three runs of ORG, of two workflows, and one of the other organization."""
    state = InMemoryState()
    state.workflows = {RUN.workflow_id: [a_workflow(entrypoint())]}
    state.workflow_runs = {run.id: StoredWorkflowRun(run) for run in (RUN, NEWER, OF_ANOTHER_WORKFLOW, FOREIGN)}
    return InMemoryWorkflowRunStore(state, InProcessWakeups())


async def listed(
    runs: WorkflowRunStore, principal: Principal | None = None, wanted: WorkflowRunFilter | None = None, limit: int = 50
) -> tuple[WorkflowRun, ...]:
    page = await ListWorkflowRuns(runs=runs).execute(
        principal or a_principal(Role.VIEWER), wanted or WorkflowRunFilter(), PageRequest(limit=limit)
    )
    return page.items


def ids_of(found: tuple[WorkflowRun, ...]) -> list[str]:
    return [run.id for run in found]


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_a_run_with_its_nodes(runs: InMemoryWorkflowRunStore, role: Role) -> None:
    assert await GetWorkflowRun(runs=runs).execute(a_principal(role), RUN.id) == RUN


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_what_a_run_executes(runs: InMemoryWorkflowRunStore, role: Role) -> None:
    definition = await GetWorkflowRun(runs=runs).definition(a_principal(role), RUN)
    assert definition == a_workflow(entrypoint()).definition


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_lists_the_runs_of_the_organization_newest_first(
    runs: InMemoryWorkflowRunStore, role: Role
) -> None:
    found = await listed(runs, a_principal(role))
    assert ids_of(found) == [NEWER.id, OF_ANOTHER_WORKFLOW.id, RUN.id]


async def test_a_page_has_no_more_runs_than_its_limit_and_leads_to_the_next(runs: InMemoryWorkflowRunStore) -> None:
    listing, viewer = ListWorkflowRuns(runs=runs), a_principal(Role.VIEWER)

    first = await listing.execute(viewer, WorkflowRunFilter(), PageRequest(limit=2))
    rest = await listing.execute(viewer, WorkflowRunFilter(), PageRequest(limit=2, cursor=first.next_cursor))

    assert (ids_of(first.items), ids_of(rest.items)) == ([NEWER.id, OF_ANOTHER_WORKFLOW.id], [RUN.id])
    assert rest.next_cursor is None


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (WorkflowRunFilter(workflow_id=WorkflowId("wfl_2")), [OF_ANOTHER_WORKFLOW.id]),
        (WorkflowRunFilter(status=WorkflowRunStatus.COMPLETED), [RUN.id]),
        (WorkflowRunFilter(workflow_id=RUN.workflow_id, status=WorkflowRunStatus.QUEUED), [NEWER.id]),
        (WorkflowRunFilter(workflow_id=WorkflowId("wfl_9")), []),
    ],
    ids=["workflow", "status", "both", "none"],
)
async def test_only_runs_that_match_are_listed(
    runs: InMemoryWorkflowRunStore, wanted: WorkflowRunFilter, found: list[str]
) -> None:
    assert ids_of(await listed(runs, wanted=wanted)) == found


@pytest.mark.requirement("C6")
async def test_runs_of_another_organization_are_not_read(runs: InMemoryWorkflowRunStore) -> None:
    with refused("workflow_run_not_found"):
        await GetWorkflowRun(runs=runs).execute(a_stranger(), RUN.id)
    assert ids_of(await listed(runs, a_stranger())) == [FOREIGN.id]


@pytest.mark.requirement("P2")
async def test_a_run_of_a_team_is_there_for_its_members_only() -> None:
    state = InMemoryState()
    state.workflow_runs = {run.id: StoredWorkflowRun(run) for run in (replace(RUN, team="finance"), NEWER)}
    runs = InMemoryWorkflowRunStore(state, InProcessWakeups())
    outsider = replace(a_principal(Role.VIEWER), teams=frozenset({"legal"}))
    insider = replace(outsider, teams=frozenset({"finance"}))
    assert (await GetWorkflowRun(runs=runs).execute(insider, RUN.id)).team == "finance"
    with refused("workflow_run_not_found"):
        await GetWorkflowRun(runs=runs).execute(outsider, RUN.id)
    assert ids_of(await listed(runs, outsider)) == [NEWER.id]
    assert ids_of(await listed(runs, insider)) == [NEWER.id, RUN.id]


@pytest.mark.requirement("P2")
async def test_who_leaves_the_team_is_told_no_further_event(mocker: MockerFixture) -> None:
    runs = mocker.create_autospec(WorkflowRunStore, instance=True)
    runs.get.return_value = replace(NEWER, team="finance")
    runs.events.return_value = (WorkflowEvent(seq=1, type=WorkflowEventType.QUEUED, at=after(1), data={}),)
    keys = mocker.create_autospec(KeyValidity, instance=True)
    keys.require.return_value = frozenset({"legal"})
    insider = replace(a_principal(Role.VIEWER), teams=frozenset({"finance"}))
    watching = WatchWorkflowRun(runs=runs, keys=keys, wakeups=InProcessWakeups())
    with refused("workflow_run_not_found"):
        async for _ in watching.follow(insider, NEWER.id):
            raise AssertionError("an event was told")


async def test_a_run_that_does_not_exist_is_not_found(runs: InMemoryWorkflowRunStore) -> None:
    with refused("workflow_run_not_found"):
        await GetWorkflowRun(runs=runs).execute(a_principal(), WorkflowRunId("wfr_9"))


async def test_a_storage_failure_is_neither_a_missing_run_nor_an_empty_list(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(WorkflowRunStore, instance=True)
    store.get.side_effect = store.page.side_effect = store.definition.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetWorkflowRun(runs=store).execute(a_principal(), RUN.id)
    with refused("storage_unavailable"):
        await GetWorkflowRun(runs=store).definition(a_principal(), RUN)
    with refused("storage_unavailable"):
        await listed(store)
