"""RecordReply: what becomes of a reply of the model, and of each call in it, in one step."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.models.ports import ModelReply, RequestedCall
from application.runs.execution.ask_model import Answer
from application.runs.execution.check_output import CheckOutput
from application.runs.execution.record_reply import RecordReply
from application.runs.execution.run_session import RunSession
from application.runs.ports import LeaseLost, RunJournal, RunReader
from application.tools.check_tool_call import CheckToolCall
from application.tools.toolset import Toolset
from application.tracing.ports import Tracer
from domain.audit.event import AuditAction
from domain.ids import MessageId
from domain.json_value import JsonObject
from domain.policy.rules import OnBlock, ToolRule, Verdict
from domain.runs.events import RunEventType
from domain.runs.finish_reason import FinishReason
from domain.runs.ledger import ToolCall, ToolCallState
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.run import Run, RunStatus
from domain.tools.capabilities import ToolType
from domain.tools.meta_tools import SEARCH_TOOLS
from infrastructure.schemas.json_schemas import JsonSchemaValidator
from tests.builders import RUN, THREAD, a_settled_call, a_tool, a_tool_call, an_agent, numbered
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import ASKS, ECHO, a_claimed_run, a_session, a_state_with_run, a_toolset, some_usage

EMAIL = a_tool("send_email", type=ToolType.SEND_EMAIL, parameters={"type": "object"})
WITHDRAWN = [FinishReason.CONTENT_FILTER, FinishReason.REFUSAL, FinishReason.CONTEXT_EXCEEDED]


def echo(arguments: JsonObject | None = None, *, malformed: str | None = None) -> RequestedCall:
    return RequestedCall(name=ECHO, arguments={"text": "hi"} if arguments is None else arguments, malformed=malformed)


def a_reply(*calls: RequestedCall, text: str = "Well.", reason: FinishReason | None = None, number: int = 7) -> Answer:
    return Answer(
        reply=ModelReply(
            model="scripted:demo.yaml",
            text=text,
            calls=calls,
            usage=some_usage(),
            finish_reason=reason or (FinishReason.TOOL_CALLS if calls else FinishReason.STOP),
        ),
        message_id=MessageId(numbered("msg", number)),
    )


class Ports:
    """A claimed run in memory whose turn has just been answered, and a mock of the ledger."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.runs: MockType = mocker.create_autospec(RunReader, instance=True)
        self.runs.tool_calls.return_value = ()
        self.tracer: MockType = mocker.create_autospec(Tracer, instance=True)
        self.use(LimitSettings())

    def use(self, limits: LimitSettings, journal: RunJournal | None = None) -> None:
        run = a_claimed_run()
        self.state: InMemoryState = a_state_with_run(run)
        self.session: RunSession = a_session(
            run=run, agent=an_agent(limits=limits), state=self.state, tracer=self.tracer, journal=journal
        )

    async def record(
        self, answer: Answer, toolset: Toolset | None = None, *, limit: IncompleteReason | None = None
    ) -> IncompleteReason | None:
        return await self.recording().execute(self.session, toolset or a_toolset(), answer, limit=limit)

    def recording(self) -> RecordReply:
        schemas = JsonSchemaValidator()
        return RecordReply(
            check=CheckToolCall(schemas=schemas),
            check_output=CheckOutput(schemas=schemas),
            runs=self.runs,
            clock=FixedClock(),
        )

    @property
    def run(self) -> Run:
        return self.state.runs[RUN].run

    @property
    def calls(self) -> list[ToolCall]:
        return list(self.state.runs[RUN].calls.values())

    @property
    def outcomes(self) -> list[str | None]:
        """How each call is: its state, or the code it was settled with."""
        return [call.state.value if call.result is None else call.result.error_code for call in self.calls]

    @property
    def events(self) -> list[RunEventType]:
        return [event.type for event in self.state.runs[RUN].events]


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


# --- replies without calls ---


@pytest.mark.requirement("A1", "A10")
async def test_a_whole_reply_without_calls_completes_the_run(ports: Ports) -> None:
    assert await ports.record(a_reply(text="It is noon.")) is None

    assert (ports.run.status, ports.run.output) == (RunStatus.COMPLETED, "It is noon.")
    assert ports.events == [RunEventType.MESSAGE_COMPLETED, RunEventType.RUN_COMPLETED]
    [(_, spent)] = ports.state.spent
    assert spent.usage == some_usage()


@pytest.mark.requirement("H2")
async def test_a_reply_that_was_cut_at_the_output_limit_ends_the_run_incomplete(ports: Ports) -> None:
    await ports.record(a_reply(reason=FinishReason.LENGTH))

    assert (ports.run.status, ports.run.incomplete_reason) == (
        RunStatus.INCOMPLETE,
        IncompleteReason.MAX_OUTPUT_TOKENS,
    )


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("reason", WITHDRAWN)
async def test_a_withdrawn_reply_ends_the_run_with_its_reason_and_its_calls_are_dropped(
    ports: Ports, reason: FinishReason
) -> None:
    await ports.record(a_reply(echo(), reason=reason))

    assert (ports.run.status, ports.run.incomplete_reason) == (RunStatus.INCOMPLETE, reason.incomplete_reason)
    assert ports.calls == []
    assert ports.state.threads[THREAD].messages[-1].tool_uses == ()


@pytest.mark.requirement("H2")
async def test_a_paused_reply_is_stored_and_the_answer_is_the_whole_of_it(ports: Ports) -> None:
    await ports.record(a_reply(text="First, ", reason=FinishReason.PAUSED))
    assert (ports.run.status, ports.events[-1]) == (RunStatus.IN_PROGRESS, RunEventType.TURN_STARTED)

    await ports.record(a_reply(text="then.", number=8))

    assert (ports.run.status, ports.run.output) == (RunStatus.COMPLETED, "First, then.")


# --- calls that may be made ---


@pytest.mark.requirement("A2", "E3")
async def test_calls_are_recorded_as_intended_with_the_reply_before_any_is_executed(ports: Ports) -> None:
    await ports.record(a_reply(echo(), echo({"text": "again"})))

    assert [(call.state, call.params) for call in ports.calls] == [
        (ToolCallState.RECORDED, {"text": "hi"}),
        (ToolCallState.RECORDED, {"text": "again"}),
    ]
    assert ports.run.status is RunStatus.IN_PROGRESS
    assert ports.run.usage.tool_calls == 2
    assert ports.events == [RunEventType.MESSAGE_COMPLETED, RunEventType.TOOL_STARTED, RunEventType.TOOL_STARTED]


@pytest.mark.requirement("A3", "D5")
async def test_a_displayable_call_makes_the_run_wait_for_its_client(ports: Ports) -> None:
    await ports.record(a_reply(RequestedCall(name="send_email", arguments={})), a_toolset(EMAIL))

    assert ports.outcomes == ["awaiting_client"]
    assert (ports.run.status, ports.run.output) == (RunStatus.REQUIRES_ACTION, "Well.")


@pytest.mark.requirement("C3")
async def test_a_call_that_needs_an_approval_awaits_it(ports: Ports) -> None:
    await ports.record(a_reply(echo()), a_toolset(rules=ASKS))

    assert ports.outcomes == ["awaiting_approval"]
    [approval] = ports.state.approvals.values()
    assert (ports.run.status, ports.run.pending[0].id) == (RunStatus.REQUIRES_ACTION, approval.tool_call_id)


@pytest.mark.requirement("C3")
async def test_the_run_does_not_wait_before_the_calls_beside_it_are_executed(ports: Ports) -> None:
    email = RequestedCall(name="send_email", arguments={})

    await ports.record(a_reply(email, echo()), a_toolset(EMAIL, a_tool()))

    assert ports.outcomes == ["awaiting_client", "recorded"]
    assert ports.run.status is RunStatus.IN_PROGRESS


# --- calls that may not be made ---


@pytest.mark.requirement("A4", "A9")
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (RequestedCall(name="nothing", arguments={}), "tool_not_found"),
        (echo({"text": 7}), "tool_arguments_invalid"),
        (echo({}, malformed="{"), "tool_arguments_malformed"),
    ],
    ids=["no tool", "arguments", "malformed"],
)
async def test_a_call_that_the_run_may_not_make_is_settled_with_a_text_for_the_model(
    ports: Ports, call: RequestedCall, code: str
) -> None:
    await ports.record(a_reply(call, echo()))

    assert ports.outcomes == [code, "recorded"]
    assert ports.run.usage.tool_calls == 1


@pytest.mark.requirement("C2", "C5")
async def test_a_call_that_policy_blocks_is_settled_and_audited(ports: Ports) -> None:
    await ports.record(a_reply(echo()), a_toolset(rules={ECHO: ToolRule(denied_params=("text",))}))

    assert ports.outcomes == ["parameter_denied"]
    assert ports.events[-1] is RunEventType.TURN_STARTED
    assert [entry.action for entry in ports.state.audit.values()] == [AuditAction.TOOL_BLOCKED]


@pytest.mark.requirement("H2")
async def test_of_a_reply_that_was_cut_in_a_call_the_complete_calls_are_recorded(ports: Ports) -> None:
    await ports.record(a_reply(echo(), echo({}, malformed='{"te'), reason=FinishReason.LENGTH))

    assert ports.outcomes == ["recorded", "tool_arguments_cut"]
    assert ports.run.status is RunStatus.IN_PROGRESS


async def test_a_search_for_tools_is_answered_in_the_same_step(ports: Ports) -> None:
    search = RequestedCall(name=SEARCH_TOOLS, arguments={"query": "say"})

    await ports.record(a_reply(search), a_toolset(search_threshold=0))

    [call] = ports.calls
    assert call.result is not None
    assert ECHO in call.result.text
    assert ports.run.usage.tool_calls == 0


@pytest.mark.requirement("C2")
async def test_a_call_for_which_policy_halts_ends_the_run_and_no_call_beside_it_is_made(ports: Ports) -> None:
    rules = {ECHO: ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT)}
    toolset = a_toolset(a_tool("mcp__files__read"), denied=(a_tool(),), rules=rules)
    read = RequestedCall(name="mcp__files__read", arguments={"text": "hi"})

    await ports.record(a_reply(read, echo()), toolset)

    assert ports.run.status is RunStatus.HALTED
    assert ports.outcomes == ["run_halted", "tool_denied"]
    assert len(ports.state.threads[THREAD].messages[-1].tool_results) == 2


# --- limits ---


@pytest.mark.requirement("A7")
async def test_a_limit_forbids_all_calls_of_the_reply(ports: Ports) -> None:
    reached = await ports.record(a_reply(echo(), echo()), limit=IncompleteReason.MAX_TURNS)

    assert (reached, ports.outcomes) == (IncompleteReason.MAX_TURNS, ["limit_reached", "limit_reached"])


@pytest.mark.requirement("A7")
async def test_calls_beyond_the_limit_of_tool_calls_are_forbidden(ports: Ports) -> None:
    ports.use(LimitSettings(max_tool_calls=1))

    reached = await ports.record(a_reply(echo(), echo()))

    assert (reached, ports.outcomes) == (IncompleteReason.MAX_TOOL_CALLS, ["recorded", "limit_reached"])


@pytest.mark.requirement("A7")
async def test_calls_beyond_those_of_a_turn_get_a_text_and_end_nothing(ports: Ports) -> None:
    ports.use(LimitSettings(max_calls_per_turn=2))

    reached = await ports.record(a_reply(*[echo()] * 2_000))

    assert reached is None
    assert ports.outcomes == ["recorded"] * 2 + ["too_many_calls"] * 1_998


@pytest.mark.requirement("A7")
async def test_refused_calls_take_no_place_of_a_turn(ports: Ports) -> None:
    ports.use(LimitSettings(max_calls_per_turn=1))

    await ports.record(a_reply(RequestedCall(name="no_such_tool", arguments={}), echo(), echo()))

    assert ports.outcomes == ["tool_not_found", "recorded", "too_many_calls"]


@pytest.mark.requirement("C2")
async def test_calls_are_counted_over_the_run_from_its_ledger_which_is_read_once(ports: Ports) -> None:
    refused_before = a_settled_call(a_tool_call(1))
    ports.runs.tool_calls.return_value = (a_tool_call(), refused_before)
    toolset = a_toolset(rules={ECHO: ToolRule(max_calls=3)})

    await ports.record(a_reply(echo(), echo()), toolset)
    await ports.record(a_reply(echo(), number=8), toolset)

    assert ports.outcomes == ["recorded", "max_calls_reached", "max_calls_reached"]
    ports.runs.tool_calls.assert_awaited_once()


async def test_without_a_rule_that_counts_the_ledger_is_not_read(ports: Ports) -> None:
    await ports.record(a_reply(echo()))

    ports.runs.tool_calls.assert_not_awaited()


# --- one step, and ports that fail ---


@pytest.mark.requirement("E3")
@pytest.mark.parametrize("answer", [a_reply(), a_reply(echo(), echo({}))], ids=["answer", "calls"])
async def test_a_reply_is_one_step_and_nothing_is_mirrored_when_it_cannot_be_stored(
    ports: Ports, mocker: MockerFixture, answer: Answer
) -> None:
    journal = mocker.create_autospec(RunJournal, instance=True)
    journal.commit.side_effect = LeaseLost(RUN)
    ports.use(LimitSettings(), journal)

    with pytest.raises(LeaseLost):
        await ports.record(answer)

    journal.commit.assert_awaited_once()
    assert (ports.session.run.status, ports.session.open_calls) == (RunStatus.IN_PROGRESS, {})


@pytest.mark.requirement("C2")
async def test_calls_that_cannot_be_counted_are_not_recorded(ports: Ports) -> None:
    ports.runs.tool_calls.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ports.record(a_reply(echo()), a_toolset(rules={ECHO: ToolRule(max_calls=3)}))

    assert (ports.calls, ports.events) == ([], [])
