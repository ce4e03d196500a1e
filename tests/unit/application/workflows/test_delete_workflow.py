"""DeleteWorkflow: who takes a workflow out of use, and what is audited."""

import pytest
from pytest_mock import MockerFixture

from application.workflows.delete_workflow import DeleteWorkflow, DeleteWorkflowCommand
from application.workflows.ports import WorkflowStore
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import WorkflowId
from domain.workflows.graph import Workflow
from tests.builders import ORG, START
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger, roles_below
from tests.workflow_builders import entrypoint, workflow

STORED = Workflow(
    id=WorkflowId("wfl_1"),
    organization_id=ORG,
    version=2,
    definition=workflow(entrypoint(), name="story"),
    created_at=START,
    updated_at=START,
)


class Ports:
    """The workflow `story` at version 2."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        self.state.workflows[STORED.id] = [STORED]
        self.workflows: WorkflowStore = InMemoryWorkflowStore(self.state)

    async def delete(self, principal: Principal | None = None, *, name: str = "story") -> None:
        deleting = DeleteWorkflow(workflows=self.workflows, clock=FixedClock(), ids=SequentialIds())
        await deleting.execute(DeleteWorkflowCommand(principal=principal or a_principal(), workflow=name))

    def assert_it_stays(self) -> None:
        assert self.state.workflows_in_use(ORG) == [STORED]
        assert self.state.audit == {}


@pytest.fixture
def ports() -> Ports:
    return Ports()


@pytest.mark.parametrize("name", ["story", STORED.id])
async def test_a_deleted_workflow_is_out_of_use_and_its_name_is_free(ports: Ports, name: str) -> None:
    await ports.delete(name=name)
    assert await ports.workflows.find(ORG, "story") is None


@pytest.mark.requirement("C5")
async def test_a_deletion_is_audited_with_the_last_version(ports: Ports) -> None:
    await ports.delete()

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.WORKFLOW_DELETED, "key_admin", STORED.id)
    assert entry.details == {"name": "story", "version": 2}


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_delete_workflows(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.delete(a_principal(role))

    ports.assert_it_stays()


@pytest.mark.requirement("C6")
async def test_a_workflow_of_another_organization_is_not_deleted(ports: Ports) -> None:
    with refused("workflow_not_found"):
        await ports.delete(a_stranger())

    ports.assert_it_stays()


async def test_a_workflow_that_is_deleted_at_the_same_time_is_not_found(ports: Ports, mocker: MockerFixture) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.find.return_value = STORED
    workflows.delete.return_value = False

    with refused("workflow_not_found"):
        await ports.delete()


async def test_a_deletion_that_cannot_be_stored_is_not_reported(ports: Ports, mocker: MockerFixture) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.find.return_value = STORED
    workflows.delete.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.delete()
