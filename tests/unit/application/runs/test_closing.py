"""The last steps of a run: every open call gets its one answer."""

import pytest

from domain.runs.closing import cancelled_step, displayed_step, tool_message
from domain.runs.ledger import ToolCall
from domain.runs.run import Run, RunStatus
from domain.tools.result import ToolResult
from tests.builders import START, a_displayable_call, a_run, a_tool_call

RUNNING: Run = a_run().claimed(at=START)
DONE: ToolCall = a_tool_call(0, result=ToolResult.succeeded("done"))


@pytest.mark.requirement("A4")
def test_answers_come_in_the_models_order_whatever_the_order_of_the_ledger() -> None:
    calls = tuple(a_tool_call(index, result=ToolResult.succeeded(str(index))) for index in (2, 0, 1))
    message = tool_message(RUNNING, calls, at=START)
    assert message is not None
    assert [result.result for result in message.tool_results] == ["0", "1", "2"]


def test_there_is_no_message_without_calls_and_none_with_an_unsettled_one() -> None:
    assert tool_message(RUNNING, (), at=START) is None
    with pytest.raises(ValueError, match="no result"):
        tool_message(RUNNING, (a_tool_call(),), at=START)


@pytest.mark.requirement("A12", "C5")
def test_cancelling_settles_what_is_open_and_leaves_what_is_settled() -> None:
    open_call = a_tool_call(1)
    step = cancelled_step(RUNNING, (DONE, open_call), at=START, actor="key_1")
    assert step.run.status is RunStatus.CANCELLED
    assert [call.id for call in step.settled] == [open_call.id]
    [message] = step.messages
    assert [result.tool_id for result in message.tool_results] == [DONE.id, open_call.id]
    assert [event.type.value for event in step.events] == ["tool.failed", "message.completed", "run.cancelled"]
    assert [(entry.action.value, entry.actor) for entry in step.audit] == [
        ("tool.failed", "system"),
        ("run.cancelled", "key_1"),
    ]


def test_cancelling_between_turns_writes_no_message() -> None:
    step = cancelled_step(RUNNING, (), at=START, actor="system")
    assert (step.messages, step.settled, len(step.events)) == ((), (), 1)


@pytest.mark.requirement("D5")
def test_displayed_calls_succeed_and_the_run_keeps_its_output() -> None:
    call = a_displayable_call(1)
    waiting = RUNNING.suspended((), output="Shall I?")
    step = displayed_step(waiting, (DONE, call), at=START)
    assert (step.run.status, step.run.output) == (RunStatus.COMPLETED, "Shall I?")
    assert [call.result for call in step.settled] == [ToolResult.succeeded("Tool has been displayed successfully")]
