"""DecideApproval: who may decide an approval, and which decider gets the decision."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.decide_approval import DecideApproval, DecideApprovalCommand
from application.approvals.ports import ApprovalDecider, ApprovalStore
from domain.approvals.approval import Approval, ApprovalState
from domain.approvals.decision import CallDecision
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.role import Role
from tests.gateway_builders import a_gateway_approval
from tests.refusals import refused, storage_away
from tests.run_builders import a_run_approval
from tests.unit.application.actors import a_principal

APPROVAL = a_run_approval()
APPROVED = replace(APPROVAL, state=ApprovalState.APPROVED)
OPERATOR = a_principal(Role.OPERATOR)


class Ports:
    """Mocks of what `DecideApproval` calls: a pending approval that the decision approves."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.approvals: MockType = mocker.create_autospec(ApprovalStore, instance=True)
        self.approvals.get.side_effect = [APPROVAL, APPROVED]
        self.of_run: MockType = mocker.create_autospec(ApprovalDecider, instance=True)
        self.of_session: MockType = mocker.create_autospec(ApprovalDecider, instance=True)

    async def decide(self, by: Principal = OPERATOR) -> Approval:
        deciding = DecideApproval(approvals=self.approvals, of_run=self.of_run, of_session=self.of_session)
        return await deciding.execute(
            DecideApprovalCommand(
                principal=by, approval_id=APPROVAL.id, approve=True, arguments={"text": "edited"}, reason="because"
            )
        )

    def assert_nothing_is_decided(self) -> None:
        self.of_run.execute.assert_not_awaited()
        self.of_session.execute.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C3")
async def test_an_approval_of_a_run_goes_to_the_decider_of_runs(ports: Ports) -> None:
    assert await ports.decide() == APPROVED

    ports.of_run.execute.assert_awaited_once_with(
        OPERATOR,
        APPROVAL,
        CallDecision(
            tool_call_id=APPROVAL.tool_call_id,
            approval_id=APPROVAL.id,
            approve=True,
            arguments={"text": "edited"},
            reason="because",
        ),
    )
    ports.of_session.execute.assert_not_awaited()


@pytest.mark.requirement("C3", "F5")
async def test_an_approval_of_a_gateway_session_goes_to_the_decider_of_sessions(ports: Ports) -> None:
    pending = a_gateway_approval()
    ports.approvals.get.side_effect = [pending, pending]

    await ports.decide()

    assert ports.of_session.execute.await_args.args[:2] == (OPERATOR, pending)
    ports.of_run.execute.assert_not_awaited()


@pytest.mark.requirement("C3", "C6")
async def test_a_runner_decides_nothing(ports: Ports) -> None:
    with refused("role_insufficient"):
        await ports.decide(by=a_principal(Role.RUNNER))

    ports.approvals.get.assert_not_awaited()
    ports.assert_nothing_is_decided()


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ApprovalState.APPROVED, "approval_decided"),
        (ApprovalState.DENIED, "approval_decided"),
        (ApprovalState.EXPIRED, "approval_expired"),
        (ApprovalState.STALE, "approval_stale"),
        (ApprovalState.CANCELLED, "approval_cancelled"),
    ],
)
async def test_an_approval_that_has_ended_is_not_decided_again(ports: Ports, state: ApprovalState, code: str) -> None:
    ports.approvals.get.side_effect = [replace(APPROVAL, state=state)]

    with refused(code):
        await ports.decide()

    ports.assert_nothing_is_decided()


@pytest.mark.requirement("C6")
async def test_an_approval_that_the_organization_does_not_have_is_not_found(ports: Ports) -> None:
    ports.approvals.get.side_effect = [None]

    with refused("approval_not_found"):
        await ports.decide()

    ports.approvals.get.assert_awaited_once_with(OPERATOR.organization_id, APPROVAL.id, teams=OPERATOR.visible_teams)
    ports.assert_nothing_is_decided()


async def test_an_approval_that_is_deleted_during_the_decision_is_not_found(ports: Ports) -> None:
    ports.approvals.get.side_effect = [APPROVAL, None]

    with refused("approval_not_found"):
        await ports.decide()


async def test_a_refusal_of_the_decider_reaches_the_caller(ports: Ports) -> None:
    ports.of_run.execute.side_effect = conflict("approval_stale", "The agent has changed.")

    with refused("approval_stale"):
        await ports.decide()

    ports.approvals.get.assert_awaited_once()


async def test_a_storage_failure_decides_nothing(ports: Ports) -> None:
    ports.approvals.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.decide()

    ports.assert_nothing_is_decided()
