"""ValidateWorkflow: who may ask what saving would answer."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.workflows.validate_workflow import ValidateWorkflow, ValidateWorkflowCommand
from application.workflows.workflow_checks import CheckedWorkflow, WorkflowChecks
from domain.identity.role import Role
from domain.workflows.graph import Workflow
from tests.doubles.state import InMemoryState
from tests.doubles.workflows import InMemoryWorkflowStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, roles_below
from tests.workflow_builders import a_workflow, entrypoint, workflow

DEFINITION = workflow(entrypoint())
CHECKED = CheckedWorkflow(plan=None, faults=(), warnings=())


@pytest.fixture
def checks(mocker: MockerFixture) -> MockType:
    checks: MockType = mocker.create_autospec(WorkflowChecks, instance=True)
    checks.check.return_value = CHECKED
    return checks


async def validate(
    checks: MockType, role: Role = Role.ADMIN, *, stored: Workflow | None = None, workflow: str | None = None
) -> CheckedWorkflow:
    state = InMemoryState()
    state.workflows = {} if stored is None else {stored.id: [stored]}
    command = ValidateWorkflowCommand(principal=a_principal(role), definition=DEFINITION, workflow=workflow)
    return await ValidateWorkflow(workflows=InMemoryWorkflowStore(state), checks=checks).execute(command)


@pytest.mark.requirement("F1")
async def test_an_admin_gets_everything_that_is_wrong_as_an_answer(checks: MockType) -> None:
    assert await validate(checks) is CHECKED
    checks.check.assert_awaited_once_with(a_principal(), DEFINITION, former_team=None)
    checks.require.assert_not_awaited()


@pytest.mark.requirement("P2")
async def test_the_team_that_the_changed_workflow_has_is_known_to_the_check(checks: MockType) -> None:
    await validate(checks, stored=a_workflow(entrypoint(), team="gone"), workflow="story")
    checks.check.assert_awaited_once_with(a_principal(), DEFINITION, former_team="gone")
    with refused("workflow_not_found"):
        await validate(checks, workflow="story")


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", roles_below(Role.ADMIN))
async def test_a_role_that_may_not_save_learns_nothing(checks: MockType, role: Role) -> None:
    with refused("role_insufficient"):
        await validate(checks, role)

    checks.check.assert_not_awaited()


async def test_a_storage_failure_is_not_a_valid_workflow(checks: MockType) -> None:
    checks.check.side_effect = storage_away()

    with refused("storage_unavailable"):
        await validate(checks)
