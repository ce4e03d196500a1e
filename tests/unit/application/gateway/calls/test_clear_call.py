"""ClearGatewayCall: which approval a call waits for, and when it may be sent."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.ports import TIMERS_TOPIC, ApprovalStore, session_approvals_topic
from application.gateway.calls.ask_client import AskableClient
from application.gateway.calls.clear_call import (
    ApprovalWaits,
    Clearance,
    Cleared,
    ClearGatewayCall,
    Ended,
    Refused,
    Waiting,
)
from application.gateway.calls.notify_of_approval import NotifyOfApproval
from application.gateway.calls.request_states import RequestStates
from application.gateway.ports import AskedCall, GatewayApprovals
from application.gateway.tools.gateway_toolset import GatewayToolset
from application.tools.check_tool_call import CheckToolCall
from domain.approvals.approval import Approval, ApprovalState
from domain.gateway.call import GatewayCall, GatewayCallState
from domain.ids import ApprovalId
from domain.policy.rules import ToolRule, Verdict
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import after, an_agent
from tests.doubles.approvals import InMemoryApprovalStore
from tests.doubles.gateway_approvals import InMemoryGatewayApprovals
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import (
    ASKS,
    ECHO,
    a_gateway_approval,
    a_gateway_call,
    a_gateway_session,
    a_gateway_toolset,
    a_state_with,
    a_waiting_call,
)
from tests.refusals import refused, storage_away

SESSION = a_gateway_session()
STATES = RequestStates(box=SecretBox(["a key of the tests"]))
CHECK = CheckToolCall(schemas=JsonSchemaValidator())
MADE_AGAIN = a_gateway_call(2)
FORMS = AskableClient(capabilities={"elicitation": {}})


class Ports:
    """A session whose calls of `mcp__files__echo` require an approval, over in-memory tables."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state: InMemoryState = a_state_with(SESSION)
        self.approvals: ApprovalStore = InMemoryApprovalStore(self.state)
        self.wakeups = InProcessWakeups()
        self.notifying: MockType = mocker.create_autospec(NotifyOfApproval, instance=True)
        self.notifying.can_notify.return_value = False
        self.tools: GatewayToolset = a_gateway_toolset(rules=ASKS)
        self.approval_waits = ApprovalWaits(most_waiting=2)

    def waits(self, approval: Approval, number: int = 1) -> Approval:
        """A call of the session waits for the approval."""
        call = a_gateway_call(number, params=approval.arguments)
        self.state.gateway_sessions[SESSION.id].calls[call.id] = (a_waiting_call(approval, call), None)
        self.state.approvals[approval.id] = approval
        return approval

    def clearing(self, asking: GatewayApprovals | None = None) -> ClearGatewayCall:
        return ClearGatewayCall(
            asking=asking or InMemoryGatewayApprovals(self.state),
            approvals=self.approvals,
            check=CHECK,
            wakeups=self.wakeups,
            states=STATES,
            clock=FixedClock(),
            ids=SequentialIds(),
            waits=self.approval_waits,
            notifying=self.notifying,
        )

    async def clear(
        self,
        call: GatewayCall = MADE_AGAIN,
        *,
        approval_id: ApprovalId | None = None,
        wait_s: float | None = 0.0,
        client: AskableClient | None = None,
        asking: GatewayApprovals | None = None,
    ) -> Clearance:
        checked = CHECK.recheck(call.name, call.params, self.tools.toolset)
        return await self.clearing(asking).execute(
            SESSION, self.tools, call, checked, approval_id=approval_id, wait_s=wait_s, client=client
        )

    def stored_state(self, call: GatewayCall) -> GatewayCallState:
        return self.state.gateway_sessions[SESSION.id].calls[call.id][0].state


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- calls that wait ---


@pytest.mark.requirement("C3", "F5")
async def test_a_new_call_is_stored_with_its_approval_and_waits(ports: Ports, mocker: MockerFixture) -> None:
    wake = mocker.spy(ports.wakeups, "wake")

    waiting = await ports.clear()

    assert isinstance(waiting, Waiting)
    assert waiting.approval == ports.state.approvals[waiting.approval.id]
    assert ports.stored_state(MADE_AGAIN) is GatewayCallState.AWAITING_APPROVAL
    assert STATES.opened(SESSION, waiting.request_state)["approval"] == waiting.approval.id
    wake.assert_called_once_with(TIMERS_TOPIC)


@pytest.mark.requirement("C3")
async def test_the_same_call_waits_for_one_approval_however_often_it_is_made(ports: Ports) -> None:
    first, again = await ports.clear(a_gateway_call(1)), await ports.clear(a_gateway_call(2))

    assert isinstance(first, Waiting)
    assert isinstance(again, Waiting)
    assert first.approval == again.approval
    assert len(ports.state.gateway_sessions[SESSION.id].calls) == 1


@pytest.mark.requirement("C3")
async def test_the_same_tool_with_other_arguments_waits_for_another_approval(ports: Ports) -> None:
    ports.waits(a_gateway_approval(state=ApprovalState.APPROVED))

    other = await ports.clear(a_gateway_call(2, params={"text": "something else"}))

    assert isinstance(other, Waiting)
    assert other.approval.arguments == {"text": "something else"}


@pytest.mark.requirement("C3")
async def test_no_more_calls_of_a_tool_wait_than_people_can_look_at(ports: Ports) -> None:
    for number in (1, 2):
        ports.waits(a_gateway_approval(number, of=a_gateway_call(number, params={"text": str(number)})), number)

    refusal = await ports.clear(a_gateway_call(3))

    assert isinstance(refusal, Refused)
    assert (refusal.result.error_code, refusal.is_stored) == ("approvals_waiting", False)
    assert len(ports.state.approvals) == 2


async def test_calls_that_were_decided_leave_room_for_others(ports: Ports) -> None:
    for number in (1, 2):
        decided = a_gateway_call(number, params={"text": str(number)})
        ports.waits(a_gateway_approval(number, of=decided, state=ApprovalState.APPROVED), number)

    assert isinstance(await ports.clear(a_gateway_call(3)), Waiting)


@pytest.mark.requirement("C2", "C3")
async def test_nobody_is_asked_about_one_call_more_than_policy_allows(ports: Ports, mocker: MockerFixture) -> None:
    ports.tools = a_gateway_toolset(rules={ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, max_calls=1)})
    ports.state.gateway_sessions[SESSION.id].calls[a_gateway_call(1).id] = (a_gateway_call(1), None)
    wake = mocker.spy(ports.wakeups, "wake")

    refusal = await ports.clear()

    assert isinstance(refusal, Refused)
    assert (refusal.result.error_code, refusal.is_stored) == ("max_calls_reached", False)
    assert ports.state.approvals == {}
    wake.assert_not_called()


async def test_a_request_held_open_is_decided_again_when_its_approval_ends(ports: Ports, mocker: MockerFixture) -> None:
    approval = ports.waits(a_gateway_approval())
    reads = iter([approval, replace(approval, state=ApprovalState.DENIED)])

    async def get(*_: object) -> Approval:
        ports.wakeups.wake(session_approvals_topic(SESSION.id))
        return next(reads)

    ports.approvals = mocker.create_autospec(ApprovalStore, instance=True, get=get)

    async with asyncio.timeout(4):  # sooner than a look without a wake-up
        assert await ports.clear(wait_s=60.0) == Ended(approval_id=approval.id)


@pytest.mark.parametrize(("has_ended", "clearance"), [(True, Ended), (False, Waiting)])
async def test_a_client_with_forms_is_told_whom_it_waits_for(
    ports: Ports, has_ended: bool, clearance: type[Clearance]
) -> None:
    ports.waits(a_gateway_approval())
    ports.notifying.can_notify.return_value = True
    ports.notifying.execute.return_value = has_ended

    assert isinstance(await ports.clear(client=FORMS, wait_s=60.0), clearance)


async def test_a_client_that_comes_back_by_itself_is_held_for_a_shorter_time_than_one_that_does_not(
    ports: Ports,
) -> None:
    clearing = ports.clearing()
    assert clearing.wait_s(resumable=True) < clearing.wait_s(resumable=False)


# --- calls that may be sent ---


@pytest.mark.requirement("C3", "E3")
async def test_an_approved_call_is_sent_once(ports: Ports) -> None:
    approval = ports.waits(a_gateway_approval(state=ApprovalState.APPROVED))

    cleared = await ports.clear(approval_id=approval.id)

    assert isinstance(cleared, Cleared)
    assert (cleared.is_recorded, cleared.call.id) == (True, approval.tool_call_id)
    assert ports.stored_state(cleared.call) is GatewayCallState.RECORDED
    assert isinstance(await ports.clear(approval_id=approval.id), Waiting)


@pytest.mark.requirement("C3")
async def test_of_equal_calls_the_one_whose_approval_the_client_names_is_sent(ports: Ports) -> None:
    ports.waits(a_gateway_approval(50), 1)
    named = ports.waits(a_gateway_approval(51, of=a_gateway_call(2), state=ApprovalState.APPROVED), 2)

    cleared = await ports.clear(a_gateway_call(3), approval_id=named.id)

    assert isinstance(cleared, Cleared)
    assert cleared.call.id == named.tool_call_id


@pytest.mark.requirement("C3")
async def test_an_approved_call_that_another_request_has_sent_is_not_sent_again(
    ports: Ports, mocker: MockerFixture
) -> None:
    approval = a_gateway_approval(state=ApprovalState.APPROVED)
    asking = mocker.create_autospec(GatewayApprovals, instance=True)
    asking.asked.return_value = (AskedCall(call=a_waiting_call(approval), approval=approval),)
    asking.begin.return_value = False

    assert await ports.clear(asking=asking) == Ended(approval_id=approval.id)


@pytest.mark.requirement("C3")
async def test_edited_arguments_are_what_is_sent(ports: Ports) -> None:
    ports.waits(a_gateway_approval(state=ApprovalState.APPROVED, edited_arguments={"text": "edited"}))

    cleared = await ports.clear()

    assert isinstance(cleared, Cleared)
    assert cleared.call.params == {"text": "edited"}


@pytest.mark.requirement("C2", "C3")
async def test_edited_arguments_that_policy_denies_by_now_are_not_sent(ports: Ports) -> None:
    ports.waits(a_gateway_approval(state=ApprovalState.APPROVED, edited_arguments={"text": "a", "loud": True}))
    ports.tools = a_gateway_toolset(rules={ECHO: ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("loud",))})

    refusal = await ports.clear()

    assert isinstance(refusal, Refused)
    assert (refusal.result.error_code, refusal.is_stored) == ("parameter_denied", True)
    assert ports.stored_state(refusal.call) is GatewayCallState.AWAITING_APPROVAL


@pytest.mark.requirement("C1", "C3")
async def test_a_waiting_call_that_policy_allows_by_now_is_sent_and_its_approval_is_stale(ports: Ports) -> None:
    approval = ports.waits(a_gateway_approval())
    ports.tools = a_gateway_toolset()

    cleared = await ports.clear(approval_id=approval.id)

    assert isinstance(cleared, Cleared)
    assert cleared.is_recorded
    assert ports.state.approvals[approval.id].state is ApprovalState.STALE


# --- calls that are asked for again, or refused ---


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("state", "version"),
    [
        (ApprovalState.PENDING, 2),
        (ApprovalState.APPROVED, 2),
        (ApprovalState.DENIED, 2),
        (ApprovalState.STALE, 1),
    ],
)
async def test_after_the_agent_has_changed_the_call_is_asked_for_again(
    ports: Ports, state: ApprovalState, version: int
) -> None:
    old = ports.waits(a_gateway_approval(50, state=state))
    ports.tools = a_gateway_toolset(rules=ASKS, agent=an_agent(version=version))

    waiting = await ports.clear(approval_id=old.id)

    assert isinstance(waiting, Waiting)
    assert (waiting.approval.agent_version, waiting.approval.tool_call_id) == (version, old.tool_call_id)
    assert waiting.approval.id != old.id


@pytest.mark.requirement("C3")
async def test_a_stale_approval_that_another_request_has_replaced_is_not_replaced_again(
    ports: Ports, mocker: MockerFixture
) -> None:
    stale = a_gateway_approval(state=ApprovalState.STALE)
    asking = mocker.create_autospec(GatewayApprovals, instance=True)
    asking.asked.return_value = (AskedCall(call=a_waiting_call(stale), approval=stale),)
    asking.ask.return_value = False
    wake = mocker.spy(ports.wakeups, "wake")

    assert await ports.clear(asking=asking) == Ended(approval_id=stale.id)
    wake.assert_not_called()


@pytest.mark.requirement("C3")
@pytest.mark.parametrize(
    ("state", "code"),
    [
        (ApprovalState.DENIED, "approval_denied"),
        (ApprovalState.EXPIRED, "approval_expired"),
        (ApprovalState.CANCELLED, "approval_cancelled"),
    ],
)
async def test_a_call_that_was_not_approved_is_refused_with_the_reason_and_not_begun(
    ports: Ports, state: ApprovalState, code: str
) -> None:
    approval = ports.waits(a_gateway_approval(state=state))

    refusal = await ports.clear()

    assert isinstance(refusal, Refused)
    assert (refusal.result.error_code, refusal.is_stored, refusal.call.id) == (code, True, approval.tool_call_id)
    assert ports.stored_state(refusal.call) is GatewayCallState.AWAITING_APPROVAL


@pytest.mark.requirement("C3")
async def test_a_call_whose_denial_was_told_may_be_asked_for_again(ports: Ports) -> None:
    ports.waits(a_gateway_approval(state=ApprovalState.DENIED))
    assert isinstance(await ports.clear(), Refused)
    ports.state.gateway_sessions[SESSION.id].calls.clear()  # the caller settles it

    assert isinstance(await ports.clear(), Waiting)


async def test_a_resumed_call_that_waits_no_longer_asks_nobody(ports: Ports) -> None:
    gone = a_gateway_approval().id

    assert await ports.clear(approval_id=gone, wait_s=None) == Ended(approval_id=gone)
    assert ports.state.approvals == {}


async def test_an_approval_lasts_no_longer_than_its_session(ports: Ports) -> None:
    waiting = await ports.clear()

    assert isinstance(waiting, Waiting)
    assert waiting.approval.expires_at == SESSION.expires_at == after(3600)


# --- failures ---


@pytest.mark.requirement("C3", "E3")
@pytest.mark.parametrize("method", ["asked", "ask", "begin"])
async def test_nothing_is_cleared_while_storage_is_away(ports: Ports, mocker: MockerFixture, method: str) -> None:
    approval = a_gateway_approval(state=ApprovalState.APPROVED)
    asking = mocker.create_autospec(GatewayApprovals, instance=True)
    asking.asked.return_value = (
        () if method == "ask" else (AskedCall(call=a_waiting_call(approval), approval=approval),)
    )
    getattr(asking, method).side_effect = storage_away()
    wake = mocker.spy(ports.wakeups, "wake")

    with refused("storage_unavailable"):
        await ports.clear(asking=asking)

    wake.assert_not_called()
