"""Reading workflows: GetWorkflow, ListWorkflows, ListWorkflowVersions."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.workflows.ports import WorkflowStore
from application.workflows.queries import GetWorkflow, ListWorkflows, ListWorkflowVersions
from domain.identity.role import Role
from domain.ids import WorkflowId
from domain.workflows.graph import Workflow
from tests.builders import ORG, START, after
from tests.doubles.state import InMemoryState
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.workflow_builders import entrypoint, workflow

FIRST = Workflow(
    id=WorkflowId("wfl_1"),
    organization_id=ORG,
    version=1,
    definition=workflow(entrypoint(), name="story"),
    created_at=START,
    updated_at=START,
)
SECOND = replace(FIRST, version=2, updated_at=after(5))
NEWER = replace(FIRST, id=WorkflowId("wfl_2"), definition=workflow(entrypoint(), name="other"), created_at=after(9))


@pytest.fixture
def workflows() -> InMemoryWorkflowStore:
    """`story` at two versions, and the newer workflow `other`."""
    state = InMemoryState()
    state.workflows = {FIRST.id: [FIRST, SECOND], NEWER.id: [NEWER]}
    return InMemoryWorkflowStore(state)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("name", ["story", FIRST.id])
async def test_every_role_reads_the_newest_version_by_name_and_by_id(
    workflows: InMemoryWorkflowStore, role: Role, name: str
) -> None:
    assert await GetWorkflow(workflows=workflows).execute(principal=a_principal(role), workflow=name) == SECOND


async def test_an_older_version_is_read_and_one_that_is_not_there_is_refused(workflows: InMemoryWorkflowStore) -> None:
    get = GetWorkflow(workflows=workflows)
    assert await get.execute(principal=a_principal(), workflow="story", version=1) == FIRST
    assert await get.execute(principal=a_principal(), workflow="story", version=2) == SECOND
    with refused("workflow_version_not_found"):
        await get.execute(principal=a_principal(), workflow="story", version=3)


@pytest.mark.requirement("P2")
async def test_a_workflow_of_a_team_is_there_for_its_members_and_for_who_sees_every_team() -> None:
    state = InMemoryState()
    state.workflows = {
        FIRST.id: [replace(FIRST, definition=replace(FIRST.definition, team="finance"))],
        NEWER.id: [NEWER],
    }
    workflows = InMemoryWorkflowStore(state)
    viewer = replace(a_principal(Role.VIEWER), teams=frozenset({"legal"}))
    insider = replace(viewer, teams=frozenset({"finance"}))
    assert (await GetWorkflow(workflows=workflows).execute(principal=insider, workflow="story")).team == "finance"
    for named in ("story", FIRST.id):
        with refused("workflow_not_found"):
            await GetWorkflow(workflows=workflows).execute(principal=viewer, workflow=named)
        with refused("workflow_not_found"):
            await ListWorkflowVersions(workflows=workflows).execute(principal=viewer, workflow=named)
    for reader, count in ((viewer, 1), (insider, 2), (a_principal(), 2)):
        assert len((await ListWorkflows(workflows=workflows).execute(principal=reader)).items) == count


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_lists_workflows_at_their_newest_version_newest_first(
    workflows: InMemoryWorkflowStore, role: Role
) -> None:
    page = await ListWorkflows(workflows=workflows).execute(principal=a_principal(role))
    assert page.items == (NEWER, SECOND)


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_lists_the_versions_of_a_workflow_newest_first(
    workflows: InMemoryWorkflowStore, role: Role
) -> None:
    assert (
        await ListWorkflowVersions(workflows=workflows).execute(principal=a_principal(role), workflow="story")
    ).items == (SECOND, FIRST)


@pytest.mark.requirement("C6")
async def test_workflows_of_another_organization_are_not_read(workflows: InMemoryWorkflowStore) -> None:
    with refused("workflow_not_found"):
        await GetWorkflow(workflows=workflows).execute(principal=a_stranger(), workflow="story")
    with refused("workflow_not_found"):
        await ListWorkflowVersions(workflows=workflows).execute(principal=a_stranger(), workflow=FIRST.id)
    page = await ListWorkflows(workflows=workflows).execute(principal=a_stranger())
    assert page.items == ()


async def test_a_storage_failure_is_neither_a_missing_workflow_nor_an_empty_list(mocker: MockerFixture) -> None:
    store = mocker.create_autospec(WorkflowStore, instance=True)
    store.find.side_effect = store.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetWorkflow(workflows=store).execute(principal=a_principal(), workflow="story")
    with refused("storage_unavailable"):
        await ListWorkflows(workflows=store).execute(principal=a_principal())
    with refused("storage_unavailable"):
        await ListWorkflowVersions(workflows=store).execute(principal=a_principal(), workflow="story")
