"""Tasks whose call waits for an approval: when the call is made, withdrawn, or never made."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.ports import session_approvals_topic
from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.clear_call import Waiting
from application.gateway.tasks.waiting_tasks import WaitingTasks
from application.system.wakeups import Wakeups
from domain.approvals.approval import ApprovalState
from domain.gateway.call import GatewayCallState
from domain.gateway.task import TaskName, TaskStatus
from domain.ids import ToolCallId
from domain.tools.result import ToolResult
from tests.builders import START
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.gateway import InMemoryGatewayLedger
from tests.doubles.gateway_approvals import InMemoryGatewayApprovals
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_approval, a_gateway_session, a_state_with, a_waiting_call
from tests.refusals import refused

SESSION, APPROVAL = a_gateway_session(), a_gateway_approval()
CALL = a_waiting_call(APPROVAL)
NAME = TaskName(session_id=SESSION.id, tool=CALL.name, call_id=CALL.id, created_at=START, approval_id=APPROVAL.id)


class Ports:
    """A session one of whose calls waits for an approval, in memory."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION, CALL)
        self.state.approvals[APPROVAL.id] = APPROVAL
        self.asking = InMemoryGatewayApprovals(self.state)
        self.call_tool: MockType = mocker.create_autospec(CallGatewayTool, instance=True)
        self.wakeups: MockType = mocker.create_autospec(Wakeups, instance=True)
        self.waiting = WaitingTasks(
            call_tool=self.call_tool,
            asking=self.asking,
            approvals=InMemoryApprovalStore(self.state),
            ledger=InMemoryGatewayLedger(self.state),
            wakeups=self.wakeups,
            clock=FixedClock(),
        )

    def decided(self, state: ApprovalState) -> None:
        """The approval ended so, and the call does not wait any more."""
        self.state.approvals[APPROVAL.id] = replace(APPROVAL, state=state, decided_at=START, reason="Too loud.")
        self.state.gateway_sessions[SESSION.id].calls.clear()

    @property
    def stored(self) -> GatewayCallState:
        call, settlement = self.state.gateway_sessions[SESSION.id].calls[CALL.id]
        return GatewayCallState.SETTLED if settlement is not None else call.state


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.mark.requirement("C3")
async def test_a_task_works_while_its_call_waits(ports: Ports) -> None:
    waiting = Waiting(approval=APPROVAL, request_state="sealed")
    ports.call_tool.resume.return_value = GatewayAnswer(result=ToolResult.succeeded(""), waiting=waiting)

    state = await ports.waiting.state(SESSION, NAME)

    assert (state.status, state.result) == (TaskStatus.WORKING, None)
    assert APPROVAL.id in state.message
    assert ports.call_tool.resume.await_args.args[1] == APPROVAL.id


async def test_a_call_that_another_process_makes_is_left_to_it(ports: Ports) -> None:
    ports.call_tool.resume.return_value = None

    state = await ports.waiting.state(SESSION, NAME)

    assert (state.status, state.result) == (TaskStatus.WORKING, None)
    assert ports.stored is GatewayCallState.AWAITING_APPROVAL


@pytest.mark.requirement("C2", "C3")
async def test_a_call_that_policy_denies_by_now_is_withdrawn(ports: Ports) -> None:
    denied = ToolResult.blocked("tool_denied", "No.")
    ports.call_tool.resume.return_value = GatewayAnswer(result=denied)

    state = await ports.waiting.state(SESSION, NAME)

    assert (state.status, state.result) == (TaskStatus.FAILED, denied)
    assert ports.stored is GatewayCallState.SETTLED
    assert ports.state.approvals[APPROVAL.id].state is ApprovalState.CANCELLED


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("ended", "status", "code"),
    [
        (ApprovalState.DENIED, TaskStatus.FAILED, "approval_denied"),
        (ApprovalState.EXPIRED, TaskStatus.FAILED, "approval_expired"),
        (ApprovalState.CANCELLED, TaskStatus.CANCELLED, "task_cancelled"),
        (ApprovalState.APPROVED, TaskStatus.FAILED, "agent_not_called"),
    ],
)
async def test_a_call_that_waits_no_more_says_why(
    ports: Ports, ended: ApprovalState, status: TaskStatus, code: str
) -> None:
    ports.decided(ended)

    state = await ports.waiting.state(SESSION, NAME)

    assert (state.status, state.at) == (status, START)
    assert state.result is not None
    assert state.result.error_code == code
    ports.call_tool.resume.assert_not_awaited()


async def test_a_task_of_an_approval_that_is_gone_is_not_found(ports: Ports) -> None:
    ports.state.approvals.clear()
    ports.state.gateway_sessions[SESSION.id].calls.clear()

    with refused("task_not_found"):
        await ports.waiting.state(SESSION, NAME)


@pytest.mark.requirement("C3")
async def test_cancelling_withdraws_the_call_and_wakes_its_client(ports: Ports) -> None:
    assert await ports.waiting.cancel(SESSION, NAME) is True

    assert ports.stored is GatewayCallState.SETTLED
    assert ports.state.approvals[APPROVAL.id].state is ApprovalState.CANCELLED
    ports.wakeups.wake.assert_called_once_with(session_approvals_topic(SESSION.id))


@pytest.mark.requirement("C3")
async def test_a_call_that_is_begun_at_the_same_time_is_not_withdrawn(ports: Ports, mocker: MockerFixture) -> None:
    mocker.patch.object(ports.asking, "begin", return_value=False)

    assert await ports.waiting.cancel(SESSION, NAME) is False

    assert ports.stored is GatewayCallState.AWAITING_APPROVAL
    ports.wakeups.wake.assert_not_called()


async def test_cancelling_a_call_that_does_not_wait_changes_nothing(ports: Ports) -> None:
    assert await ports.waiting.cancel(SESSION, replace(NAME, call_id=ToolCallId("call_other"))) is True

    assert ports.stored is GatewayCallState.AWAITING_APPROVAL
