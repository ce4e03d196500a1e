"""GetApproval: who may read an approval."""

import pytest

from application.approvals.queries import GetApproval
from domain.identity.role import Role
from tests.builders import a_tool_call
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal, a_stranger

APPROVAL = a_run_approval(a_tool_call(0))


def approvals() -> InMemoryApprovalStore:
    state = InMemoryState()
    state.approvals = {APPROVAL.id: APPROVAL}
    return InMemoryApprovalStore(state)


@pytest.mark.requirement("C3")
async def test_a_viewer_reads_an_approval_of_the_organization() -> None:
    found = await GetApproval(approvals=approvals()).execute(a_principal(Role.VIEWER), APPROVAL.id)
    assert found == APPROVAL


@pytest.mark.requirement("C6")
async def test_an_approval_of_another_organization_is_not_found() -> None:
    with refused("approval_not_found"):
        await GetApproval(approvals=approvals()).execute(a_stranger(), APPROVAL.id)
