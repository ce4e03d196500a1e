"""ListApprovals: who may list approvals, and in which order."""

import pytest
from pytest_mock import MockerFixture

from application.approvals.ports import ApprovalFilter, ApprovalStore
from application.approvals.queries import ListApprovals
from application.system.pages import PageRequest
from domain.approvals.approval import ApprovalState
from domain.identity.role import Role
from tests.builders import ORG, a_run_id, a_tool_call
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.state import InMemoryState
from tests.refusals import refused, storage_away
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal, a_stranger

FIRST, SECOND = (a_run_approval(a_tool_call(index)) for index in (0, 1))
DECIDED = a_run_approval(a_tool_call(2), state=ApprovalState.APPROVED)
EVERYTHING = ApprovalFilter()


def stored_approvals() -> InMemoryApprovalStore:
    state = InMemoryState()
    state.approvals = {approval.id: approval for approval in (FIRST, DECIDED, SECOND)}
    return InMemoryApprovalStore(state)


@pytest.mark.requirement("C3")
async def test_a_viewer_lists_the_approvals_of_the_organization_newest_first() -> None:
    page = await ListApprovals(approvals=stored_approvals()).execute(
        principal=a_principal(Role.VIEWER), wanted=EVERYTHING, page=PageRequest(limit=10)
    )

    assert page.items == (DECIDED, SECOND, FIRST)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ApprovalFilter(state=ApprovalState.PENDING), (SECOND, FIRST)),
        (ApprovalFilter(run_id=a_run_id(7)), ()),
    ],
    ids=["state", "run"],
)
async def test_a_filter_narrows_the_list(wanted: ApprovalFilter, found: tuple[object, ...]) -> None:
    page = await ListApprovals(approvals=stored_approvals()).execute(
        principal=a_principal(Role.VIEWER), wanted=wanted, page=PageRequest(limit=10)
    )

    assert page.items == found


@pytest.mark.requirement("C6")
async def test_approvals_of_another_organization_are_not_listed() -> None:

    page = await ListApprovals(approvals=stored_approvals()).execute(
        principal=a_stranger(), wanted=EVERYTHING, page=PageRequest(limit=10)
    )

    assert page.items == ()


async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture) -> None:
    approvals = mocker.create_autospec(ApprovalStore, instance=True)
    approvals.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListApprovals(approvals=approvals).execute(
            principal=a_principal(Role.VIEWER), wanted=EVERYTHING, page=PageRequest(limit=10)
        )

    approvals.page.assert_awaited_once_with(ORG, EVERYTHING, PageRequest(limit=10))
