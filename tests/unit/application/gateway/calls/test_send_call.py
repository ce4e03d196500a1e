"""SendGatewayCall: what is sent for a call, and what its client is told of the outcome."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.gateway.calls.answer import GatewayAnswer
from application.gateway.calls.ask_client import AskableClient, AskClient, Conversation
from application.gateway.calls.call_command import CallGatewayToolCommand
from application.gateway.calls.pending_calls import PendingCalls
from application.gateway.calls.send_call import SendGatewayCall
from application.gateway.calls.settle_call import SettleGatewayCall
from application.gateway.tools.gateway_toolset import GatewayToolset
from application.mcp.log_messages import LogTap, McpLogMessage
from application.mcp.ports import McpProgress, McpReply
from application.tools.call_context import IDEMPOTENCY_META, ToolCallContext
from application.tools.check_tool_call import CheckedCall
from application.tools.execute_tool import ExecuteTool
from application.tools.ports import CapabilitiesMissing, InputAwaited
from application.tracing.ports import GatewayTracer
from domain.errors import conflict
from domain.json_value import JsonObject
from domain.mcp.elicitation import InputRound
from domain.mcp.log_level import LogLevel
from domain.policy.rules import ToolRule
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from tests.builders import RUN, a_tool
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import CANARY, ECHO, a_gateway_call, a_gateway_session, a_gateway_toolset
from tests.refusals import refused, storage_away

SESSION, CALL = a_gateway_session(), a_gateway_call()
CHECKED = CheckedCall(name=ECHO, params=CALL.params, tool=a_tool())
DONE = ToolResult.succeeded("hi")
REPLY = McpReply(is_error=False, content=(), raw={"content": [{"type": "text", "text": "hi"}]})


class Ports:
    """Mocks of what `SendGatewayCall` calls: the tool answers "hi", and its server asks for
    nothing."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.execute_tool: MockType = mocker.create_autospec(ExecuteTool, instance=True)
        self.execute_tool.execute.return_value = DONE
        self.asking: MockType = mocker.create_autospec(AskClient, instance=True)
        self.asking.about.return_value = None
        self.pending: MockType = mocker.create_autospec(PendingCalls, instance=True)
        self.settling: MockType = mocker.create_autospec(SettleGatewayCall, instance=True)
        self.settling.halt.return_value = conflict("gateway_session_halted", "The session was halted.")
        self.tracer: MockType = mocker.create_autospec(GatewayTracer, instance=True)
        self.tracer.enabled = False
        self.conversation: MockType = mocker.create_autospec(Conversation, instance=True)
        self.conversation.asked, self.conversation.missing = [], {}
        self.tools: GatewayToolset = a_gateway_toolset(canary=True)

    async def send(self, command: CallGatewayToolCommand | None = None) -> GatewayAnswer:
        sending = SendGatewayCall(
            execute_tool=self.execute_tool,
            asking=self.asking,
            pending=self.pending,
            settling=self.settling,
            tracer=self.tracer,
            clock=FixedClock(),
        )
        return await sending.execute(command or a_command(), self.tools, CALL, CHECKED)

    @property
    def sent(self) -> ToolCallContext:
        """What was sent."""
        context: ToolCallContext = self.execute_tool.execute.await_args.args[2]
        return context

    def replies(self, result: ToolResult, reply: McpReply = REPLY) -> None:
        """The server answers so."""

        async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
            assert context.on_reply is not None
            context.on_reply(reply)
            return result

        self.execute_tool.execute.side_effect = execute


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


def a_command(**more: object) -> CallGatewayToolCommand:
    return CallGatewayToolCommand(session=SESSION, name=ECHO, arguments=CALL.params, **more)  # type: ignore[arg-type]


# --- what is sent ---


@pytest.mark.requirement("E3", "F5")
async def test_a_call_is_sent_with_its_id_on_the_connections_of_its_session(ports: Ports) -> None:
    await ports.send(a_command(meta={"traceparent": "00-1"}))

    ports.execute_tool.execute.assert_awaited_once_with(CHECKED.tool, CALL.params, ports.sent)
    scope = ports.sent.scope
    assert (scope.thread_id, scope.gateway_session_id, scope.run_id) == (SESSION.thread_id, SESSION.id, None)
    assert ports.sent.meta == {"traceparent": "00-1", IDEMPOTENCY_META: CALL.id}


async def test_a_call_of_a_runs_session_is_sent_on_the_connections_of_the_run(ports: Ports) -> None:
    await ports.send(replace(a_command(), session=a_gateway_session(run_id=RUN)))

    assert (ports.sent.scope.run_id, ports.sent.scope.gateway_session_id) == (RUN, None)


async def test_the_trace_of_the_service_goes_along_where_the_client_has_none(ports: Ports) -> None:
    ports.tracer.enabled = True
    ports.tracer.gateway_context.return_value = {"traceparent": "00-ours"}

    await ports.send()

    assert ports.sent.meta["traceparent"] == "00-ours"


# --- what the client is told ---


@pytest.mark.requirement("F5")
async def test_the_outcome_is_stored_and_answered_with_all_that_the_server_said(ports: Ports) -> None:
    ports.replies(DONE)

    answer = await ports.send()

    assert (answer.result, answer.reply, answer.uris_of) == (DONE, REPLY, "files")
    assert ports.settling.settle.await_args.args[3] is DONE


@pytest.mark.requirement("E3", "F5")
async def test_a_call_whose_outcome_cannot_be_stored_is_not_answered(ports: Ports) -> None:
    ports.settling.settle.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.send()


@pytest.mark.requirement("C2")
async def test_of_a_result_that_policy_cuts_only_the_text_is_answered(ports: Ports) -> None:
    ports.tools = a_gateway_toolset(rules={ECHO: ToolRule(max_result_bytes=10)})
    ports.replies(DONE)

    assert (await ports.send()).reply is None
    assert ports.sent.max_result_bytes == 10


@pytest.mark.requirement("E3", "F5")
async def test_a_call_whose_client_has_gone_is_cancelled_and_its_outcome_is_unknown(ports: Ports) -> None:
    ports.execute_tool.execute.side_effect = asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ports.send()

    ports.settling.cut_short.assert_awaited_once()
    ports.settling.settle.assert_not_awaited()


async def test_a_tool_that_does_not_stop_in_time_is_abandoned_and_its_call_settled(ports: Ports) -> None:
    ports.asking.about.return_value = ports.conversation

    async def execute(*_: object) -> ToolResult:
        ports.conversation.deadline.reschedule(0)  # its time is up
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    ports.execute_tool.execute.side_effect = execute

    answer = await ports.send()

    assert answer.result.error_code == "tool_timeout"
    assert ports.settling.settle.await_args.args[3] is answer.result


async def test_storage_that_is_away_while_a_call_is_made_is_no_outcome_of_it(ports: Ports) -> None:
    ports.execute_tool.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.send()

    ports.settling.settle.assert_not_awaited()


async def test_what_a_client_cannot_be_asked_for_is_the_end_of_the_call(ports: Ports) -> None:
    ports.asking.about.return_value = ports.conversation
    ports.execute_tool.execute.side_effect = CapabilitiesMissing({"sampling": {}})

    answer = await ports.send()

    assert (answer.result.error_code, answer.missing) == ("mcp_capability_missing", {"sampling": {}})
    assert ports.settling.settle.await_args.args[3] is answer.result


async def test_a_server_that_asks_where_nobody_answers_is_declined(ports: Ports) -> None:
    ports.execute_tool.execute.side_effect = InputAwaited(InputRound(number=1, questions=(), answers={}))

    assert (await ports.send()).result.error_code == "mcp_input_declined"


# --- canary tokens ---


@pytest.mark.requirement("C4", "F5")
@pytest.mark.parametrize(
    ("result", "reply"),
    [
        (ToolResult.succeeded(f"The word is {CANARY}."), REPLY),
        (ToolResult.failed("mcp_tool_error", CANARY), REPLY),
        (DONE, replace(REPLY, raw={"content": [], "structuredContent": {"word": CANARY}})),
    ],
    ids=["result", "failure", "beside the text"],
)
async def test_a_canary_token_in_what_a_server_answers_ends_the_session_and_is_told_to_nobody(
    ports: Ports, result: ToolResult, reply: McpReply
) -> None:
    ports.replies(result, reply)

    with refused("gateway_session_halted"):
        await ports.send()

    _, _, _, stored, canary_id = ports.settling.halt.await_args.args
    assert canary_id == "vault"
    assert CANARY not in stored.text
    ports.settling.settle.assert_not_awaited()


@pytest.mark.requirement("C4")
async def test_progress_and_logs_with_a_canary_token_are_not_told_and_end_the_session(ports: Ports) -> None:
    told: list[object] = []

    async def tell(what: object) -> None:
        told.append(what)

    async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
        assert context.on_progress is not None
        assert context.logs is not None
        await context.on_progress(McpProgress(progress=1, message="half"))
        await context.logs.tell(McpLogMessage(level=LogLevel.INFO, data="fine"))
        await context.on_progress(McpProgress(progress=2, message=CANARY))
        await context.logs.tell(McpLogMessage(level=LogLevel.INFO, data="after that"))
        return DONE

    ports.execute_tool.execute.side_effect = execute

    with refused("gateway_session_halted"):
        await ports.send(a_command(on_progress=tell, logs=LogTap(level=LogLevel.DEBUG, tell=tell)))

    assert len(told) == 2


# --- clients that come back ---


@pytest.mark.requirement("F5")
async def test_a_client_that_is_asked_by_the_answer_to_its_request_comes_back_for_the_end(ports: Ports) -> None:
    ports.asking.about.return_value = ports.conversation
    asked = GatewayAnswer(result=DONE)

    async def begin(pending: object, conversation: object, making: object) -> GatewayAnswer:
        making.close()  # type: ignore[attr-defined]
        return asked

    ports.pending.begin.side_effect = begin

    assert await ports.send(a_command(resumable=True, client=AskableClient(capabilities={}))) is asked

    pending = ports.pending.begin.await_args.args[0]
    assert (pending.call_id, pending.arguments) == (CALL.id, CALL.params)
    ports.execute_tool.execute.assert_not_awaited()


async def test_answers_that_come_with_a_call_go_to_its_server(ports: Ports) -> None:
    ports.asking.about.return_value = ports.conversation

    await ports.send(a_command(responses={"where": {"roots": []}, "odd": 7}))

    assert ports.sent.input is not None
    assert ports.sent.input.answers == {"where": {"roots": []}}
