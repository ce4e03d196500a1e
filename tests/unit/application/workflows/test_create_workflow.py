"""CreateWorkflow: what is stored and audited, and what is refused before that."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.workflows.create_workflow import CreateWorkflow, CreateWorkflowCommand, SavedWorkflow
from application.workflows.ports import WorkflowStore
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.audit.event import AuditAction
from domain.errors import invalid
from domain.identity.role import Role
from domain.workflows.graph import WorkflowDefinition
from tests.builders import ORG, START
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.group_builders import a_group
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, roles_below
from tests.workflow_builders import entrypoint, workflow

DEFINITION = workflow(entrypoint(), name="story")
CHECKED = CheckedWorkflow(plan=None, faults=(), warnings=())


class Ports:
    """No workflow is stored, and each that is checked is right."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.workflows: WorkflowStore = InMemoryWorkflowStore(self.state)
        self.checks: MockType = mocker.create_autospec(WorkflowChecks, instance=True)
        self.checks.require.return_value = CHECKED
        self.ids = SequentialIds()

    async def create(self, role: Role = Role.ADMIN, definition: WorkflowDefinition = DEFINITION) -> SavedWorkflow:
        creating = CreateWorkflow(workflows=self.workflows, checks=self.checks, clock=FixedClock(), ids=self.ids)
        return await creating.execute(
            CreateWorkflowCommand(principal=a_principal(role), definition=definition, text="# why")
        )

    def assert_nothing_is_stored(self) -> None:
        assert (self.state.workflows, self.state.audit) == ({}, {})


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


async def test_a_workflow_is_stored_at_version_1_with_what_was_found_out_about_it(ports: Ports) -> None:
    saved = await ports.create()

    created = saved.workflow
    assert (created.version, created.definition, created.organization_id) == (1, DEFINITION, ORG)
    assert created.text == "# why"
    assert (created.created_at, created.updated_at) == (START, START)
    assert saved.checked is CHECKED
    assert ports.state.workflows == {created.id: [created]}


@pytest.mark.requirement("C5")
async def test_a_created_workflow_is_audited(ports: Ports) -> None:
    created = (await ports.create()).workflow

    [entry] = ports.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.WORKFLOW_CREATED, "key_admin", created.id)
    assert entry.details == {"name": "story", "version": 1}


@pytest.mark.requirement("P2")
async def test_a_workflow_may_belong_to_a_team_which_the_trail_says(ports: Ports) -> None:
    group = a_group("finance")
    ports.state.organization_groups[group.id] = group
    created = (await ports.create(definition=workflow(entrypoint(), team="finance"))).workflow

    assert created.team == "finance"
    [entry] = ports.state.audit.values()
    assert entry.details == {"name": "story", "version": 1, "team": "finance"}


async def test_a_name_is_taken_once_in_an_organization(ports: Ports) -> None:
    first = (await ports.create()).workflow

    with refused("workflow_name_taken"):
        await ports.create()

    assert ports.state.workflows == {first.id: [first]}
    assert len(ports.state.audit) == 1


@pytest.mark.requirement("F1")
async def test_a_workflow_with_faults_is_not_stored(ports: Ports) -> None:
    ports.checks.require.side_effect = invalid("workflow_invalid", "The workflow is not valid.")

    with refused("workflow_invalid"):
        await ports.create()

    ports.checks.require.assert_awaited_once_with(a_principal(), DEFINITION)
    ports.assert_nothing_is_stored()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_only_admins_create_workflows(ports: Ports, role: Role) -> None:
    with refused("role_insufficient"):
        await ports.create(role)

    ports.checks.require.assert_not_awaited()
    ports.assert_nothing_is_stored()


async def test_a_workflow_that_cannot_be_stored_is_not_reported_as_created(ports: Ports, mocker: MockerFixture) -> None:
    workflows = ports.workflows = mocker.create_autospec(WorkflowStore, instance=True)
    workflows.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.create()
