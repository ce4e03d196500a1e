"""CallTools: which calls of a turn are sent, what is stored around each, and how the turn ends."""

import asyncio
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.mcp.ports import McpProgress
from application.policy.canary_guard import CanaryFound
from application.runs.execution.call_tools import CallTools, CallToolsSettings
from application.runs.execution.change_state import ChangeState
from application.runs.execution.interruption import Interrupted, StopReason
from application.runs.execution.run_session import RunSession
from application.runs.ports import LeaseLost, RunJournal
from application.runs.sealed_input import sealed, unsealed
from application.tools.call_context import IDEMPOTENCY_META, ToolCallContext
from application.tools.execute_tool import ExecuteTool
from application.tools.ports import InputAwaited
from application.tools.toolset import Toolset
from application.tracing.ports import Tracer
from domain.ids import ToolCallId
from domain.json_value import JsonObject
from domain.mcp.elicitation import Elicitation, InputRound
from domain.policy.rules import ToolRule
from domain.runs.events import RunEventType
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import LimitSettings
from domain.runs.run import RunStatus
from domain.tools.result import ToolResult
from domain.tools.tool import Tool
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.secrets.secret_box import SecretBox
from tests.builders import RUN, THREAD, a_displayable_call, a_settled_call, a_tool, a_tool_call, an_agent
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import (
    CANARY,
    DENIES,
    ECHO,
    a_claimed_run,
    a_guarded_agent,
    a_session,
    a_state_with_run,
    a_toolset,
)

BOX = SecretBox(["a key of the tests"])
FIRST, SECOND = a_tool_call(0), a_tool_call(1)
DONE = ToolResult.succeeded("done")
ROUND = InputRound(number=1, questions=(Elicitation(request_id="where", message="Where?", schema={}),))
ANSWERED = replace(ROUND, answers={"where": {"action": "decline"}})


class Ports:
    """A claimed run in memory, a tool that answers "done", and a clock."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.state = InMemoryState()
        self.execute_tool: MockType = mocker.create_autospec(ExecuteTool, instance=True)
        self.execute_tool.execute.return_value = DONE
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.tracer.trace_context.return_value = {"traceparent": "00-1"}
        self.clock = FixedClock()

    def session(self, *calls: ToolCall, guarded: bool = False, **more: object) -> RunSession:
        agent = a_guarded_agent() if guarded else an_agent(limits=LimitSettings(tool_timeout_s=20))
        run = a_claimed_run()
        self.state = a_state_with_run(run, *calls, agent=agent)
        return a_session(
            *calls,
            run=run,
            agent=agent,
            state=self.state,
            tracer=self.tracer,
            clock=self.clock,
            **more,  # type: ignore[arg-type]
        )

    async def call(self, session: RunSession, toolset: Toolset | None = None, *, parallel_calls: int = 8) -> None:
        calling = CallTools(
            execute_tool=self.execute_tool,
            change_state=ChangeState(runs=InMemoryRunStore(self.state, InProcessWakeups())),
            box=BOX,
            tracer=self.tracer,
            clock=self.clock,
            settings=CallToolsSettings(parallel_calls=parallel_calls),
        )
        await calling.execute(session, toolset or a_toolset())

    def stored(self, call: ToolCall = FIRST) -> ToolCall:
        return self.state.runs[RUN].calls[call.id]

    @property
    def sent(self) -> ToolCallContext:
        context: ToolCallContext = self.execute_tool.execute.await_args.args[2]
        return context

    @property
    def events(self) -> list[RunEventType]:
        return [event.type for event in self.state.runs[RUN].events]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- what is sent ---


@pytest.mark.requirement("A4", "E3")
async def test_a_call_is_sent_with_its_id_the_trace_and_the_bounds_of_policy(ports: Ports) -> None:
    rules = {ECHO: ToolRule(timeout_s=5, max_results=3, max_result_bytes=100)}

    await ports.call(ports.session(FIRST), a_toolset(rules=rules))

    ports.execute_tool.execute.assert_awaited_once_with(a_tool(), FIRST.params, ports.sent)
    assert (ports.sent.tool_call_id, ports.sent.scope.run_id) == (FIRST.id, RUN)
    assert ports.sent.meta == {IDEMPOTENCY_META: FIRST.id, "traceparent": "00-1"}
    assert (ports.sent.timeout_s, ports.sent.max_results, ports.sent.max_result_bytes) == (5, 3, 100)


@pytest.mark.requirement("E4")
async def test_nothing_is_sent_on_a_lease_that_does_not_hold(ports: Ports) -> None:
    with pytest.raises(Interrupted) as stopped:
        await ports.call(ports.session(FIRST, lease_holds=False))

    assert stopped.value.reason is StopReason.LEASE_LOST
    assert ports.stored() == FIRST
    ports.execute_tool.execute.assert_not_awaited()


@pytest.mark.requirement("C2", "C3", "E3")
@pytest.mark.parametrize("state", [ToolCallState.APPROVED, ToolCallState.INPUT_GIVEN])
async def test_an_approved_or_answered_call_is_recorded_before_it_is_sent(ports: Ports, state: ToolCallState) -> None:
    recorded: list[ToolCallState] = []

    async def execute(*_: object) -> ToolResult:
        recorded.append(ports.stored().state)
        return DONE

    ports.execute_tool.execute.side_effect = execute

    await ports.call(ports.session(replace(FIRST, state=state)))

    assert recorded == [ToolCallState.RECORDED]
    assert (RunEventType.TOOL_STARTED in ports.events) is (state is ToolCallState.APPROVED)


@pytest.mark.requirement("E3", "E4")
async def test_a_call_that_cannot_be_recorded_is_not_sent(ports: Ports, mocker: MockerFixture) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = LeaseLost(RUN)

    with pytest.raises(LeaseLost):
        await ports.call(ports.session(replace(FIRST, state=ToolCallState.APPROVED), journal=journal))

    ports.execute_tool.execute.assert_not_awaited()


@pytest.mark.requirement("A4", "C2")
@pytest.mark.parametrize(
    ("toolset", "code"),
    [(a_toolset(a_tool("other")), "tool_not_found"), (a_toolset(denied=(a_tool(),), rules=DENIES), "tool_denied")],
    ids=["gone", "denied"],
)
async def test_a_call_of_a_tool_that_the_run_has_no_more_is_answered_and_not_sent(
    ports: Ports, toolset: Toolset, code: str
) -> None:
    await ports.call(ports.session(FIRST), toolset)

    result = ports.stored().result
    assert result is not None
    assert result.error_code == code
    ports.execute_tool.execute.assert_not_awaited()


@pytest.mark.requirement("A7")
async def test_a_call_without_time_left_is_answered_and_not_sent(ports: Ports) -> None:
    session = ports.session(FIRST)
    ports.clock.advance(10_000)

    await ports.call(session)

    result = ports.stored().result
    assert result is not None
    assert result.error_code == "limit_reached"
    ports.execute_tool.execute.assert_not_awaited()


@pytest.mark.requirement("A4")
async def test_calls_run_at_the_same_time_within_the_bound(ports: Ports) -> None:
    running: list[ToolCallId] = []
    most = 0

    async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
        nonlocal most
        running.append(context.tool_call_id)
        most = max(most, len(running))
        await asyncio.sleep(0)
        running.remove(context.tool_call_id)
        return DONE

    ports.execute_tool.execute.side_effect = execute

    await ports.call(ports.session(*map(a_tool_call, range(5))), parallel_calls=2)

    assert (most, ports.execute_tool.execute.await_count) == (2, 5)


# --- outcomes ---


@pytest.mark.requirement("A2", "A4", "E3")
async def test_the_last_outcome_stores_the_results_in_the_models_order_and_begins_the_next_turn(ports: Ports) -> None:
    second_is_stored = asyncio.Event()
    ports.tracer.enabled = True
    ports.tracer.tool_call.side_effect = lambda _: second_is_stored.set()

    async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
        if context.tool_call_id == SECOND.id:
            return ToolResult.succeeded("second")
        await second_is_stored.wait()
        assert ports.stored(SECOND).result == ToolResult.succeeded("second")
        return ToolResult.succeeded("first")

    ports.execute_tool.execute.side_effect = execute
    session = ports.session(FIRST, SECOND)

    async with asyncio.timeout(10):
        await ports.call(session)

    answer = ports.state.threads[THREAD].messages[-1]
    assert [result.result for result in answer.tool_results] == ["first", "second"]
    assert ports.events[-1] is RunEventType.TURN_STARTED
    assert session.open_calls == {}


@pytest.mark.requirement("A5")
async def test_a_failure_is_stored_as_the_outcome_and_begins_the_next_turn(ports: Ports) -> None:
    ports.execute_tool.execute.return_value = ToolResult.failed("mcp_error", "No.")

    await ports.call(ports.session(FIRST))

    assert ports.stored().result == ToolResult.failed("mcp_error", "No.")
    assert ports.events[-1] is RunEventType.TURN_STARTED


@pytest.mark.requirement("A2")
async def test_a_turn_whose_calls_are_all_settled_ends_without_sending_any(ports: Ports) -> None:
    await ports.call(ports.session(a_settled_call(FIRST)))

    assert ports.state.threads[THREAD].messages[-1].tool_results[0].result == "done"
    ports.execute_tool.execute.assert_not_awaited()


@pytest.mark.requirement("A2", "D5")
async def test_the_run_waits_for_its_client_once_all_other_calls_are_settled(ports: Ports) -> None:
    displayed = a_displayable_call(1)

    await ports.call(ports.session(FIRST, displayed))

    run = ports.state.runs[RUN].run
    assert (run.status, [use.id for use in run.pending]) == (RunStatus.REQUIRES_ACTION, [displayed.id])
    assert ports.stored().result == DONE


@pytest.mark.requirement("A12")
async def test_calls_in_flight_end_when_the_run_is_stopped_and_have_no_outcome(ports: Ports) -> None:
    session = ports.session(FIRST, SECOND)

    async def execute(*_: object) -> ToolResult:
        session.stop.fire(StopReason.CANCELLED)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    ports.execute_tool.execute.side_effect = execute

    with pytest.raises(Interrupted):
        await ports.call(session)

    assert (ports.stored(FIRST), ports.stored(SECOND)) == (FIRST, SECOND)


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("calls", [(FIRST,), (FIRST, SECOND)], ids=["one call", "two calls"])
async def test_storage_that_is_away_during_a_call_is_no_outcome_of_it(
    ports: Ports, calls: tuple[ToolCall, ...]
) -> None:
    ports.execute_tool.execute.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.call(ports.session(*calls))

    assert ports.stored() == FIRST


# --- servers that ask ---


@pytest.mark.requirement("B4")
async def test_a_call_whose_server_asks_waits_with_the_question_and_sealed_notes(ports: Ports) -> None:
    ports.execute_tool.execute.side_effect = InputAwaited(ROUND)

    await ports.call(ports.session(FIRST))

    run, call = ports.state.runs[RUN].run, ports.stored()
    assert (run.status, call.state) == (RunStatus.REQUIRES_ACTION, ToolCallState.AWAITING_INPUT)
    assert run.pending[0].elicitation == ROUND.current
    assert call.input is not None
    assert unsealed(call.input, BOX) == ROUND


@pytest.mark.requirement("B4")
async def test_an_answered_call_is_sent_again_with_the_answers(ports: Ports) -> None:
    given = replace(FIRST, state=ToolCallState.INPUT_GIVEN, input=sealed(ANSWERED, BOX))

    await ports.call(ports.session(given))

    assert ports.sent.input == ANSWERED


@pytest.mark.requirement("B4", "C7")
async def test_a_call_whose_answers_cannot_be_decrypted_is_answered_and_not_sent(ports: Ports) -> None:
    lost = sealed(ANSWERED, SecretBox(["another key"]))

    await ports.call(ports.session(replace(FIRST, state=ToolCallState.INPUT_GIVEN, input=lost)))

    result = ports.stored().result
    assert result is not None
    assert result.is_error
    ports.execute_tool.execute.assert_not_awaited()


# --- canary tokens ---


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_a_result_is_raised_with_the_clean_outcome_and_stored_nowhere(ports: Ports) -> None:
    ports.execute_tool.execute.return_value = ToolResult.succeeded(f"It is {CANARY}.")

    with pytest.raises(CanaryFound) as found:
        await ports.call(ports.session(FIRST, guarded=True))

    assert (found.value.canary_id, found.value.tool_call_id) == ("vault", FIRST.id)
    assert found.value.settled is not None
    assert found.value.settled.outcome[0].text == "It is [canary:vault]."
    assert ports.stored() == FIRST


@pytest.mark.requirement("B4", "C4")
async def test_a_canary_token_in_a_question_is_not_asked(ports: Ports) -> None:
    question = Elicitation(request_id="where", message=f"Is it {CANARY}?", schema={})
    ports.execute_tool.execute.side_effect = InputAwaited(replace(ROUND, questions=(question,)))

    with pytest.raises(CanaryFound):
        await ports.call(ports.session(FIRST, guarded=True))

    assert ports.stored() == FIRST


@pytest.mark.requirement("C4")
async def test_a_canary_token_in_the_progress_of_a_call_is_published_as_its_mark_and_ends_the_turn(
    ports: Ports,
) -> None:
    session = ports.session(FIRST, guarded=True)

    async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
        assert context.on_progress is not None
        await context.on_progress(McpProgress(progress=1, message=CANARY))
        return DONE

    ports.execute_tool.execute.side_effect = execute

    with pytest.raises(CanaryFound):
        await ports.call(session)

    [event] = await session.buffer.take()
    assert (event.type, CANARY in str(event.data)) == (RunEventType.TOOL_PROGRESS, False)


@pytest.mark.requirement("C4")
async def test_calls_beside_one_that_brings_a_canary_token_are_cancelled(ports: Ports) -> None:
    async def execute(_: Tool, __: JsonObject, context: ToolCallContext) -> ToolResult:
        if context.tool_call_id == SECOND.id:
            return ToolResult.succeeded(CANARY)
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]

    ports.execute_tool.execute.side_effect = execute

    async with asyncio.timeout(10):
        with pytest.raises(CanaryFound):
            await ports.call(ports.session(FIRST, SECOND, guarded=True))

    assert ports.stored(FIRST) == FIRST
