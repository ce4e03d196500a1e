"""Replies that are not whole answers: cut, filtered, refused, or paused."""

import pytest
from pytest_mock import MockerFixture

from application.runs.agent_reply import reply_of
from domain.runs.events import RunEventType
from domain.runs.finish_reason import FinishReason
from domain.runs.limits import IncompleteReason, LimitSettings
from domain.runs.run import Run, RunStatus
from domain.threads.message import Role
from tests.doubles.mcp_connections import InMemoryMcpServer, text_reply
from tests.doubles.scripted_model import ModelTurn
from tests.unit.application.runs.crashing import crash_after
from tests.unit.application.runs.doubles import asks, call, says
from tests.unit.application.runs.harness import EMAIL, RunHarness
from tests.unit.application.runs.invariants import assert_consistent

READ = "mcp__files__read"
FILES = {"files": InMemoryMcpServer(tools={"read": text_reply("the file's text")})}
ENDINGS = [
    (FinishReason.LENGTH, IncompleteReason.MAX_OUTPUT_TOKENS),
    (FinishReason.CONTENT_FILTER, IncompleteReason.CONTENT_FILTER),
    (FinishReason.REFUSAL, IncompleteReason.REFUSAL),
    (FinishReason.CONTEXT_EXCEEDED, IncompleteReason.CONTEXT_EXCEEDED),
]


def ending(run: Run) -> tuple[RunStatus, IncompleteReason | None, str | None]:
    return run.status, run.incomplete_reason, run.output


@pytest.mark.requirement("H2", "C5")
@pytest.mark.parametrize(("finish_reason", "reason"), ENDINGS)
async def test_a_reply_that_is_no_whole_answer_ends_the_run_incomplete_and_everything_says_why(
    finish_reason: FinishReason, reason: IncompleteReason
) -> None:
    harness = RunHarness([ModelTurn(text="So far", finish_reason=finish_reason)])
    run_id = await harness.play()
    run = harness.run(run_id)
    assert ending(run) == (RunStatus.INCOMPLETE, reason, "So far")
    assert harness.types(run_id)[-1] == "run.incomplete"
    assert harness.of_type(run_id, RunEventType.RUN_INCOMPLETE) == [{"reason": reason.value}]
    ended = next(entry for entry in harness.audit(run_id) if entry.action.value == "run.completed")
    assert (ended.details["status"], ended.details["reason"]) == ("incomplete", reason.value)
    assert harness.transcript()[-1].text == "So far"
    assert reason.explanation in reply_of(run).result.text
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H2")
@pytest.mark.parametrize("finish_reason", [FinishReason.STOP, FinishReason.TOOL_CALLS, FinishReason.OTHER])
async def test_a_reply_without_calls_that_was_not_cut_completes_the_run(finish_reason: FinishReason) -> None:
    harness = RunHarness([ModelTurn(text="Done.", finish_reason=finish_reason)])
    assert ending(harness.run(await harness.play())) == (RunStatus.COMPLETED, None, "Done.")


@pytest.mark.requirement("H2", "A9")
async def test_of_a_reply_cut_at_its_output_limit_whole_calls_are_executed_and_the_cut_one_is_answered() -> None:
    cut = ModelTurn(calls=(call(READ), call(READ, malformed='{"path": "/etc/ho')), finish_reason=FinishReason.LENGTH)
    harness = RunHarness([cut, says("Now I know.")], servers=FILES)
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.COMPLETED, None, "Now I know.")
    read, refused = harness.results()
    assert read == "the file's text"
    assert "cut at the output limit" in refused
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == [None, "tool_arguments_cut"]
    assert harness.run(run_id).usage.tool_calls == 1
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H2", "A9")
async def test_malformed_arguments_of_a_whole_reply_are_not_called_cut() -> None:
    whole = ModelTurn(calls=(call(READ, malformed="[1]"),))
    harness = RunHarness([whole, says()], servers=FILES)
    run_id = await harness.play()
    assert [entry.result.error_code for entry in harness.ledger(run_id) if entry.result] == ["tool_arguments_malformed"]


@pytest.mark.requirement("H2", "D5")
async def test_a_whole_displayable_call_of_a_cut_reply_awaits_the_client() -> None:
    harness = RunHarness([ModelTurn(calls=(call("send_email", EMAIL),), finish_reason=FinishReason.LENGTH)])
    assert harness.run(await harness.play()).status is RunStatus.REQUIRES_ACTION


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    "finish_reason", [FinishReason.CONTENT_FILTER, FinishReason.REFUSAL, FinishReason.CONTEXT_EXCEEDED]
)
async def test_no_call_of_a_reply_that_was_withdrawn_is_executed(finish_reason: FinishReason) -> None:
    turn = ModelTurn(text="I will", calls=(call(READ),), finish_reason=finish_reason)
    harness = RunHarness([turn], servers=FILES)
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, finish_reason.incomplete_reason, "I will")
    assert harness.ledger(run_id) == []
    assert harness.connections.calls == []
    assert harness.transcript()[-1].tool_uses == ()
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H2", "A7")
async def test_a_closing_reply_that_was_cut_keeps_the_limit_as_the_reason() -> None:
    closing = ModelTurn(text="In sh", finish_reason=FinishReason.LENGTH)
    harness = RunHarness([asks(READ), closing], servers=FILES, limits=LimitSettings(max_turns=1))
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "In sh")


@pytest.mark.requirement("H2")
async def test_a_paused_reply_is_sent_back_and_the_answer_is_the_whole_of_it() -> None:
    harness = RunHarness([ModelTurn(text="First, ", finish_reason=FinishReason.PAUSED), says("second.")])
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.COMPLETED, None, "First, second.")
    again = harness.model.requests[1].messages[-1]
    assert (again.role, again.text) == (Role.ASSISTANT, "First, ")
    assert [data["turn"] for data in harness.of_type(run_id, RunEventType.TURN_STARTED)] == [1, 2]
    assert harness.run(run_id).usage.turns == 2


@pytest.mark.requirement("H2", "A7")
async def test_a_reply_that_is_paused_again_and_again_ends_at_the_limit_of_turns() -> None:
    harness = RunHarness(
        lambda request: ModelTurn(text=f"{request.turn} ", finish_reason=FinishReason.PAUSED),
        limits=LimitSettings(max_turns=3),
    )
    run_id = await harness.play()
    assert ending(harness.run(run_id)) == (RunStatus.INCOMPLETE, IncompleteReason.MAX_TURNS, "1 2 3 4 ")
    assert len(harness.model.requests) == 4
    assert_consistent(harness, run_id)


@pytest.mark.requirement("H2", "E4")
async def test_a_paused_reply_is_continued_after_a_crash(mocker: MockerFixture) -> None:
    paused = ModelTurn(text="First, ", finish_reason=FinishReason.PAUSED)
    harness = RunHarness([paused, says("lost"), says("second.")])
    run_id = await harness.start()
    await crash_after(harness, mocker, 1)
    await harness.worker.execute(run_id)
    run = harness.run(run_id)
    assert ending(run) == (RunStatus.COMPLETED, None, "First, second.")
    assert (run.attempt, harness.roles()) == (2, ["user", "assistant", "assistant"])
    assert_consistent(harness, run_id)
