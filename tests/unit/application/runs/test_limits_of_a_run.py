"""Limits of a run: at each of them open calls are answered, the model may close, and the work is
kept."""

from decimal import Decimal

import pytest

from application.mcp.ports import McpReply
from application.models.ports import ModelError, TextDelta, ToolChoice
from application.runs.execution.ask_model import CLOSING_OUTPUT_TOKENS
from domain.runs.events import RunEventType
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.run import Run, RunStatus
from domain.runs.usage import ModelUsage
from domain.threads.message import Role
from tests.doubles.mcp_connections import InMemoryMcpServer, InMemoryTool, Invocation, text_reply
from tests.doubles.scripted_model import Gate, ModelTurn
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

READ = {"s": InMemoryMcpServer(tools={"read": text_reply("text")})}
LOTS = ModelUsage(input_tokens=3_000, output_tokens=1_000)


def ending(run: Run) -> tuple[RunStatus, IncompleteReason | None, str | None]:
    return run.status, run.incomplete_reason, run.output


@pytest.mark.requirement("A7")
async def test_at_the_limit_of_turns_the_model_is_asked_to_close_without_tools() -> None:
    harness = RunHarness(
        [asks("mcp__s__read"), asks("mcp__s__read", "mcp__s__read", text="More?"), says("That is all I found.")],
        servers=READ,
        limits=LimitSettings(max_turns=2),
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "That is all I found.")
    closing = harness.model.requests[-1]
    assert closing.tool_choice is ToolChoice.NONE
    assert closing.tools == harness.model.requests[0].tools != ()
    assert closing.system == harness.model.requests[0].system
    assert closing.messages[-1].role is Role.TOOL
    assert closing.max_output_tokens is None, "nothing was reserved, so nothing needs to be held to it"
    codes = [entry.result.error_code for entry in harness.ledger(run_id) if entry.result]
    assert codes == [None, None, None], "the calls of the last turn are executed"
    assert harness.server_calls() == ["read", "read", "read"]
    assert harness.run(run_id).usage.turns == 3
    assert harness.types(run_id)[-1] == "run.incomplete"
    assert harness.events(run_id)[-1].data == {"reason": "max_turns"}
    assert harness.actions(run_id)[-1] == "run.completed"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_an_answer_within_the_last_turn_completes_the_run() -> None:
    harness = RunHarness([says("Easy.")], limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.COMPLETED, None, "Easy.")


@pytest.mark.requirement("A7")
async def test_the_default_is_ten_turns_with_tools() -> None:
    harness = RunHarness([*[asks("mcp__s__read")] * 10, says("Enough.")], servers=READ)
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "Enough.")
    assert (len(harness.server_calls()), harness.run(run_id).usage.turns) == (10, 11)


@pytest.mark.requirement("A7")
async def test_a_run_of_one_turn_uses_a_tool_and_answers() -> None:
    harness = RunHarness([asks("mcp__s__read"), says("It says text.")], servers=READ, limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "It says text.")
    assert harness.results() == ["text"]


@pytest.mark.requirement("A7", "D5")
async def test_a_run_that_waits_in_its_last_turn_closes_after_the_result() -> None:
    email = ModelTurn(calls=(call("send_email", EMAIL),))
    harness = RunHarness([email, says("Sent.")], limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    [pending] = harness.run(run_id).pending
    await harness.resume(run_id, {pending.id: "done"})
    await harness.new_worker().execute(run_id)
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "Sent.")
    assert harness.model.requests[-1].tool_choice is ToolChoice.NONE
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_calls_beyond_the_limit_are_refused_and_those_before_it_executed() -> None:
    harness = RunHarness(
        [asks("mcp__s__read", "nowhere", "mcp__s__read", "mcp__s__read"), says("Two is what I got.")],
        servers=READ,
        limits=LimitSettings(max_tool_calls=2),
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TOOL_CALLS, "Two is what I got.")
    codes = [entry.result.error_code for entry in harness.ledger(run_id) if entry.result]
    assert codes == [None, "tool_not_found", None, "limit_reached"]
    assert harness.run(run_id).usage.tool_calls == 2
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7", "D5")
async def test_a_displayable_call_beyond_the_limit_is_refused_like_any_other() -> None:
    email = ModelTurn(calls=(call("send_email", EMAIL),), usage=LOTS)
    harness = RunHarness([email, says("Not sent.")], limits=LimitSettings(max_tokens=8_000))
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TOKENS, "Not sent.")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_reaching_the_limit_of_calls_exactly_ends_nothing() -> None:
    harness = RunHarness([asks("mcp__s__read"), says()], servers=READ, limits=LimitSettings(max_tool_calls=1))
    run_id = await harness.play()
    assert harness.run(run_id).status is RunStatus.COMPLETED


@pytest.mark.requirement("A7")
async def test_tokens_stop_short_of_their_limit_by_what_closing_takes() -> None:
    limits = LimitSettings(max_tokens=8_000)
    harness = RunHarness([asks("mcp__s__read", usage=LOTS), says("Closing.")], servers=READ, limits=limits)
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TOKENS, "Closing.")
    assert harness.model.requests[-1].max_output_tokens == CLOSING_OUTPUT_TOKENS
    assert harness.server_calls() == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_the_cost_stops_short_of_its_limit_by_what_closing_takes() -> None:
    limits = LimitSettings(max_cost_usd=Decimal(7))
    harness = RunHarness([asks("mcp__s__read", usage=LOTS), says("Closing.")], servers=READ, limits=limits)
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_COST, "Closing.")
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(
    "limits", [LimitSettings(max_tokens=10_500), LimitSettings(max_cost_usd=Decimal("10.5"))], ids=["tokens", "cost"]
)
async def test_the_closing_turn_is_skipped_where_it_does_not_fit(limits: LimitSettings) -> None:
    greedy = ModelUsage(input_tokens=8_000, output_tokens=2_000)
    harness = RunHarness([asks("mcp__s__read", text="Let me look.", usage=greedy)], servers=READ, limits=limits)
    run_id = await harness.play()
    run = harness.run(run_id)
    assert (run.status, run.output) == (RunStatus.INCOMPLETE, "Let me look.")
    assert run.incomplete_reason in (IncompleteReason.MAX_TOKENS, IncompleteReason.MAX_COST)
    assert len(harness.model.requests) == 1
    assert harness.server_calls() == []
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_a_run_whose_time_is_up_in_the_middle_of_a_reply_closes_with_what_was_kept_back() -> None:
    harness = RunHarness(
        [ModelTurn(text="I beg", gate=Gate()), says("In short: yes.")], limits=LimitSettings(timeout_s=0.2)
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.TIMEOUT, "In short: yes.")
    assert harness.model.cancelled == 1
    [discarded] = harness.of_type(run_id, RunEventType.MESSAGE_DISCARDED)
    assert discarded["reason"] == "run_timeout"
    assert harness.tracer.generations[0].error_code == "run_timeout"
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_a_closing_turn_that_does_not_come_in_time_is_given_up() -> None:
    harness = RunHarness(
        [ModelTurn(gate=Gate()), ModelTurn(text="We", gate=Gate())], limits=LimitSettings(timeout_s=0.1)
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.TIMEOUT, None)
    assert harness.model.cancelled == 2
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_a_closing_turn_that_fails_does_not_throw_away_the_work() -> None:
    error = ModelError("model_unavailable", "No.", retryable=True)
    harness = RunHarness(
        [asks("mcp__s__read", text="I see."), ModelTurn(error=error, events=(TextDelta(text="So"),))],
        servers=READ,
        limits=LimitSettings(max_turns=1),
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "I see.")
    assert_consistent(harness, run_id)


async def test_what_an_earlier_run_said_is_never_the_output_of_an_incomplete_one() -> None:
    harness = RunHarness([says("The old answer."), ModelTurn(gate=Gate()), ModelTurn(gate=Gate())])
    await harness.play()
    await harness.warm_up()
    run_id = await harness.start(limits=LimitSettings(timeout_s=0.05))
    await harness.worker.execute(run_id)
    assert harness.run(run_id).output is None


@pytest.mark.requirement("A7")
async def test_time_spent_by_tools_counts_and_leaves_the_closing_turn_its_share() -> None:
    async def slow(_: Invocation) -> McpReply:
        harness.clock.advance(571)
        return text_reply("finally")

    harness = RunHarness(
        [asks("mcp__s__slow"), says("That took long.")],
        servers={"s": InMemoryMcpServer(tools={"slow": InMemoryTool(answer=slow)})},
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.TIMEOUT, "That took long.")
    assert harness.run(run_id).active_s == 571
    assert_consistent(harness, run_id)


@pytest.mark.requirement("A7")
async def test_time_in_the_queue_does_not_count() -> None:
    harness = RunHarness([says()])
    run_id = await harness.start()
    harness.clock.advance(10_000)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    assert harness.run(run_id).active_s == 0


@pytest.mark.requirement("A7")
async def test_a_runs_own_limits_narrow_its_agents() -> None:
    harness = RunHarness([asks("mcp__s__read"), says("One.")], servers=READ, limits=LimitSettings(max_turns=5))
    await harness.warm_up()
    run_id = await harness.start(limits=LimitSettings(max_turns=1))
    await harness.worker.execute(run_id)
    assert harness.run(run_id).incomplete_reason is IncompleteReason.MAX_TURNS


@pytest.mark.requirement("A7")
async def test_calls_the_model_makes_in_the_closing_turn_all_the_same_are_dropped() -> None:
    harness = RunHarness(
        [asks("mcp__s__read"), asks("mcp__s__read", text="One more!")], servers=READ, limits=LimitSettings(max_turns=1)
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "One more!")
    assert len(harness.ledger(run_id)) == 1
    assert_consistent(harness, run_id)
