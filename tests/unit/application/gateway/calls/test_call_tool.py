"""CallGatewayTool: what is refused, what ends the session, and what is recorded and sent."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.call_tool import CallGatewayTool
from application.gateway.calls.clear_call import Cleared, ClearGatewayCall, Ended, Refused, Waiting
from application.gateway.calls.pending_calls import PendingCalls
from application.gateway.calls.request_states import RequestStates
from application.gateway.calls.send_call import SendGatewayCall
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.ports import GatewayLedger
from application.gateway.tools.gateway_toolset import GatewayToolsets
from application.tools.check_tool_call import CheckToolCall
from domain.errors import ErrorKind, ServiceError, conflict
from domain.gateway.call import GatewayCall
from domain.json_value import JsonObject
from domain.policy.rules import ToolRule
from domain.tools.result import ToolResult
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import SERVER, a_tool, after
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.gateway_builders import (
    ASKS,
    CANARY,
    DENIES,
    ECHO,
    a_gateway_approval,
    a_gateway_call,
    a_gateway_session,
    a_gateway_toolset,
)
from tests.refusals import refused, storage_away

SESSION = a_gateway_session()
STATES = RequestStates(box=SecretBox(["a key of the tests"]))
HELLO: JsonObject = {"text": "hi"}
SENT = GatewayAnswer(result=ToolResult.succeeded("hi"))
APPROVAL = a_gateway_approval()


class Ports:
    """Mocks of what `CallGatewayTool` calls: the session has `mcp__files__echo`, and nothing stands
    against a call."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.toolsets: MockType = mocker.create_autospec(GatewayToolsets, instance=True)
        self.toolsets.of.return_value = a_gateway_toolset()
        self.ledger: MockType = mocker.create_autospec(GatewayLedger, instance=True)
        self.ledger.intend.return_value = True
        self.sending: MockType = mocker.create_autospec(SendGatewayCall, instance=True)
        self.sending.execute.return_value = SENT
        self.settling: MockType = mocker.create_autospec(SettleGatewayCall, instance=True)
        self.settling.halt.return_value = conflict("gateway_session_halted", "The session was halted.")
        self.clearing: MockType = mocker.create_autospec(ClearGatewayCall, instance=True)
        self.clearing.wait_s.return_value = 25.0
        self.pending: MockType = mocker.create_autospec(PendingCalls, instance=True)
        self.call_tool = CallGatewayTool(
            toolsets=self.toolsets,
            check=CheckToolCall(schemas=JsonSchemaValidator()),
            clearing=self.clearing,
            sending=self.sending,
            settling=self.settling,
            pending=self.pending,
            states=STATES,
            ledger=self.ledger,
            clock=FixedClock(),
            ids=SequentialIds(),
        )

    def stored_refusal(self) -> tuple[GatewayCall, ToolResult]:
        """The one call that was stored as not made, with the reason."""
        self.settling.refuse.assert_awaited_once()
        _, _, call, result = self.settling.refuse.await_args.args
        return call, result

    def assert_nothing_is_recorded_or_sent(self) -> None:
        self.ledger.intend.assert_not_awaited()
        self.sending.execute.assert_not_awaited()


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def a_command(name: str = ECHO, arguments: JsonObject | None = None, **more: object) -> CallGatewayToolCommand:
    return CallGatewayToolCommand(
        session=SESSION,
        name=name,
        arguments=HELLO if arguments is None else arguments,
        **more,  # type: ignore[arg-type]
    )


# --- calls that are sent ---


@pytest.mark.requirement("F5")
async def test_an_allowed_call_is_recorded_and_sent(ports: Ports) -> None:
    assert await ports.call_tool.execute(a_command()) is SENT

    recorded = ports.ledger.intend.await_args.args[0]
    assert (recorded.name, recorded.params, recorded.server_id) == (ECHO, HELLO, SERVER)
    assert recorded.due_at > after(0)
    assert ports.sending.execute.await_args.args[2] is recorded


@pytest.mark.requirement("F5", "E3")
async def test_a_call_whose_intent_cannot_be_stored_is_not_sent(ports: Ports) -> None:
    ports.ledger.intend.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.call_tool.execute(a_command())

    ports.sending.execute.assert_not_awaited()


async def test_a_call_that_policy_allows_asks_nobody_for_an_approval(ports: Ports) -> None:
    await ports.call_tool.execute(a_command())
    ports.clearing.execute.assert_not_awaited()


# --- calls that are refused ---


@pytest.mark.requirement("F5", "C5")
async def test_a_name_that_the_session_does_not_have_is_refused_as_unknown_and_stored(ports: Ports) -> None:
    with refused("tool_not_found"):
        await ports.call_tool.execute(a_command("mcp__files__delete"))

    call, result = ports.stored_refusal()
    assert (call.name, call.params, call.server_id) == ("mcp__files__delete", {}, None)
    assert result.error_code == "tool_not_found"
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("C2", "F5")
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "left out of the list"])
async def test_a_name_that_an_allowlist_hides_is_refused_as_unknown_and_stored(ports: Ports, listed: bool) -> None:
    tools = (a_tool(),)
    ports.toolsets.of.return_value = a_gateway_toolset(
        *(tools if listed else ()), denied=() if listed else tools, allowlist=()
    )

    with refused("tool_not_found"):
        await ports.call_tool.execute(a_command())

    call, result = ports.stored_refusal()
    assert (call.name, result.error_code) == (ECHO, "tool_not_found")
    ports.sending.execute.assert_not_awaited()


@pytest.mark.requirement("C4")
async def test_an_unknown_name_is_stored_cleaned_cut_and_without_canary_tokens(ports: Ports) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(canary=True)

    with refused("tool_not_found"):
        await ports.call_tool.execute(a_command(f"{CANARY}\n\x00 {'x' * 500}"))

    call, result = ports.stored_refusal()
    assert call.name.startswith("[canary:vault] xxx")
    assert len(call.name) < 100
    assert CANARY not in result.text


@pytest.mark.requirement("F5", "A5")
async def test_arguments_that_do_not_fit_are_answered_with_what_is_wrong_and_not_sent(ports: Ports) -> None:
    answer = await ports.call_tool.execute(a_command(arguments={"text": 7}))

    assert answer.result.error_code == "tool_arguments_invalid"
    assert ports.stored_refusal()[1] is answer.result
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("C2", "F5")
async def test_a_call_that_policy_denies_is_answered_with_its_reason_and_not_sent(ports: Ports) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(denied=(a_tool(),), rules=DENIES)

    answer = await ports.call_tool.execute(a_command())

    assert answer.result.error_code == "tool_denied"
    assert ports.stored_refusal()[1] is answer.result
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("C2", "F5")
async def test_one_call_more_than_policy_allows_a_session_is_answered_with_the_limit_and_not_sent(ports: Ports) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(rules={ECHO: ToolRule(max_calls=2)})
    ports.ledger.intend.return_value = False

    answer = await ports.call_tool.execute(a_command())

    assert ports.ledger.intend.await_args.kwargs == {"max_calls": 2}
    assert answer.result.error_code == "max_calls_reached"
    assert ports.stored_refusal()[1] is answer.result
    ports.sending.execute.assert_not_awaited()


async def test_a_refusal_that_cannot_be_stored_is_not_answered(ports: Ports) -> None:
    ports.settling.refuse.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.call_tool.execute(a_command(arguments={}))


@pytest.mark.requirement("C1")
async def test_nothing_is_recorded_for_a_session_whose_agent_is_disabled(ports: Ports) -> None:
    ports.toolsets.of.side_effect = ServiceError("agent_disabled", ErrorKind.FORBIDDEN, "The agent is disabled.")

    with refused("agent_disabled"):
        await ports.call_tool.execute(a_command())

    ports.assert_nothing_is_recorded_or_sent()
    ports.settling.refuse.assert_not_awaited()


async def test_headers_that_say_something_else_than_the_arguments_are_refused(ports: Ports) -> None:
    repeated: JsonObject = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}
    ports.toolsets.of.return_value = a_gateway_toolset(a_tool(parameters=repeated))

    with refused("header_mismatch"):
        await ports.call_tool.execute(a_command(param_headers={"mcp-param-text": "something else"}))

    ports.ledger.intend.assert_not_awaited()
    ports.settling.refuse.assert_not_awaited()


# --- canary tokens ---


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize(
    "leaking",
    [
        {"arguments": {"text": CANARY}},
        {"arguments": {"text": 7, "other": CANARY}},
        {"responses": {"where": {"roots": [CANARY]}}},
        {"name": "mcp__files__delete", "arguments": {"text": CANARY}},
    ],
    ids=["arguments", "arguments that do not fit", "answers", "arguments of an unknown tool"],
)
async def test_a_canary_token_in_what_a_client_sends_ends_the_session_and_nothing_is_sent(
    ports: Ports, leaking: dict[str, object]
) -> None:
    ports.toolsets.of.return_value = a_gateway_toolset(canary=True)

    with refused("gateway_session_halted"):
        await ports.call_tool.execute(a_command(**leaking))  # type: ignore[arg-type]

    _, _, call, result, canary_id = ports.settling.halt.await_args.args
    assert (result.error_code, canary_id) == ("run_halted", "vault")
    assert CANARY not in str(call)
    ports.assert_nothing_is_recorded_or_sent()
    ports.settling.refuse.assert_not_awaited()


# --- calls that need an approval ---


@pytest.fixture
def asks(ports: Ports) -> None:
    """Policy requires an approval."""
    ports.toolsets.of.return_value = a_gateway_toolset(rules=ASKS)


def cleared(*, is_recorded: bool) -> Cleared:
    return Cleared(call=a_gateway_call(7, params={"text": "edited"}), decision=None, is_recorded=is_recorded)


@pytest.mark.requirement("C3", "F5")
@pytest.mark.usefixtures("asks")
async def test_a_call_that_waits_for_an_approval_is_answered_with_that_and_not_sent(ports: Ports) -> None:
    ports.clearing.execute.return_value = waiting = Waiting(approval=APPROVAL, request_state="sealed")

    answer = await ports.call_tool.execute(a_command())

    assert answer.waiting is waiting
    assert answer.result.error_code == "approval_pending"
    ports.assert_nothing_is_recorded_or_sent()


@pytest.mark.requirement("C3", "F5")
@pytest.mark.usefixtures("asks")
async def test_an_approved_call_is_sent_as_it_was_approved_without_a_second_entry(ports: Ports) -> None:
    ports.clearing.execute.return_value = approved = cleared(is_recorded=True)

    assert await ports.call_tool.execute(a_command()) is SENT

    _, _, sent, checked = ports.sending.execute.await_args.args
    assert sent is approved.call
    assert checked.params == {"text": "edited"}
    ports.ledger.intend.assert_not_awaited()


@pytest.mark.requirement("C3", "E3")
@pytest.mark.usefixtures("asks")
async def test_a_call_that_needs_no_approval_any_more_is_recorded_before_it_is_sent(ports: Ports) -> None:
    ports.clearing.execute.return_value = cleared(is_recorded=False)
    ports.ledger.intend.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.call_tool.execute(a_command())

    ports.sending.execute.assert_not_awaited()


@pytest.mark.requirement("C3")
@pytest.mark.usefixtures("asks")
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored before", "not stored before"])
async def test_a_denied_call_is_stored_once_and_not_sent(ports: Ports, is_stored: bool) -> None:
    denied = ToolResult.blocked("approval_denied", "No.")
    ports.clearing.execute.return_value = Refused(
        call=a_gateway_call(), result=denied, decision=None, is_stored=is_stored
    )

    assert (await ports.call_tool.execute(a_command())).result is denied

    assert (ports.settling.settle.await_count, ports.settling.refuse.await_count) == ((1, 0) if is_stored else (0, 1))
    ports.sending.execute.assert_not_awaited()


@pytest.mark.requirement("C1", "C3")
@pytest.mark.usefixtures("asks")
async def test_a_call_whose_approval_has_ended_is_decided_again_with_the_tools_of_that_moment(ports: Ports) -> None:
    ports.toolsets.of.side_effect = [a_gateway_toolset(rules=ASKS), a_gateway_toolset(denied=(a_tool(),), rules=DENIES)]
    ports.clearing.execute.return_value = Ended(approval_id=APPROVAL.id)

    answer = await ports.call_tool.execute(a_command())

    assert answer.result.error_code == "tool_denied"
    ports.sending.execute.assert_not_awaited()


@pytest.mark.usefixtures("asks")
async def test_a_call_whose_approval_has_ended_is_cleared_again_by_that_approval(ports: Ports) -> None:
    ports.clearing.execute.side_effect = [Ended(approval_id=APPROVAL.id), cleared(is_recorded=True)]

    assert await ports.call_tool.execute(a_command()) is SENT

    assert ports.clearing.execute.await_args.kwargs["approval_id"] == APPROVAL.id


@pytest.mark.requirement("C3")
async def test_a_client_that_comes_back_with_its_state_is_cleared_by_the_approval_it_was_told_of(ports: Ports) -> None:
    ports.clearing.execute.return_value = cleared(is_recorded=True)
    state = STATES.sealed(SESSION, {"approval": APPROVAL.id})

    await ports.call_tool.execute(a_command(request_state=state))

    assert ports.clearing.execute.await_args.kwargs["approval_id"] == APPROVAL.id


@pytest.mark.requirement("F5")
async def test_a_client_that_comes_back_with_answers_goes_on_with_the_call_that_asked(ports: Ports) -> None:
    ports.pending.resume.return_value = SENT
    state = STATES.sealed(SESSION, {"call": "call_1"})

    assert await ports.call_tool.execute(a_command(request_state=state, responses={"where": {}})) is SENT

    continuation = ports.pending.resume.await_args.args[0]
    assert (continuation.name, continuation.responses) == (ECHO, {"where": {}})
    ports.toolsets.of.assert_not_awaited()


@pytest.mark.requirement("F5")
@pytest.mark.parametrize("state", ["made up", STATES.sealed(a_gateway_session(2), {"approval": APPROVAL.id})])
async def test_a_state_that_is_not_of_this_session_is_refused(ports: Ports, state: str) -> None:
    with refused("request_state_invalid"):
        await ports.call_tool.execute(a_command(request_state=state))

    ports.toolsets.of.assert_not_awaited()


@pytest.mark.usefixtures("asks")
@pytest.mark.parametrize("as_task", [True, False])
async def test_the_request_is_held_open_for_an_approval_unless_it_is_a_task(ports: Ports, as_task: bool) -> None:
    ports.clearing.execute.return_value = Waiting(approval=APPROVAL, request_state="sealed")

    await ports.call_tool.execute(a_command(as_task=as_task))

    assert (ports.clearing.execute.await_args.kwargs["wait_s"] > 0) is not as_task


@pytest.mark.usefixtures("asks")
async def test_a_resumed_call_that_waits_no_longer_is_not_asked_for_again(ports: Ports) -> None:
    ports.clearing.execute.return_value = Ended(approval_id=APPROVAL.id)

    assert await ports.call_tool.resume(a_command(), APPROVAL.id) is None

    assert ports.clearing.execute.await_args.kwargs["wait_s"] is None
    ports.clearing.execute.assert_awaited_once()
    ports.sending.execute.assert_not_awaited()
