"""Which steps of runs may hold the event loop, and which are the writing thread's."""

from dataclasses import replace

import pytest

from application.runs.ports import IdempotencyKey, NewRun
from domain.runs.run import MultitaskStrategy, RunStatus
from domain.runs.step import Step
from domain.threads.message import ImageContent, Role, TextContent, ToolResultContent
from domain.tools.result import ToolResult
from infrastructure.persistence.engine.sqlite.small_units import is_small_start, is_small_step
from tests.builders import a_message, a_new_run, a_run, a_settlement, a_tool_call

LONG = "x" * 100_000
PICTURE = ImageContent(media_type="image/png", data=LONG)
CALL = a_tool_call()


def tool_message(result: ToolResultContent) -> Step:
    step = Step(run=a_run(status=RunStatus.IN_PROGRESS))
    return replace(step, messages=(a_message(role=Role.TOOL, content=(result,)),))


def a_result(text: str, *images: ImageContent) -> ToolResultContent:
    return ToolResultContent(tool_id=CALL.id, tool_name="time", result=text, images=images)


@pytest.mark.parametrize("status", [RunStatus.IN_PROGRESS, RunStatus.COMPLETED])
def test_a_step_of_few_short_rows_is_small(status: RunStatus) -> None:
    step = Step(
        run=a_run(status=status), messages=(a_message(text="done"),), recorded=(CALL,), settled=(a_settlement(CALL),)
    )

    assert is_small_step(step)
    assert is_small_step(tool_message(a_result("12:00")))


@pytest.mark.parametrize("status", [RunStatus.REQUIRES_ACTION, RunStatus.CANCELLED, RunStatus.FAILED])
def test_a_step_that_suspends_or_stops_a_run_is_not(status: RunStatus) -> None:
    assert not is_small_step(Step(run=a_run(status=status)))


@pytest.mark.parametrize(
    "step",
    [
        tool_message(a_result(LONG)),
        tool_message(a_result("see", PICTURE)),
        Step(run=a_run(status=RunStatus.IN_PROGRESS), messages=(a_message(text=LONG),)),
        Step(run=a_run(status=RunStatus.IN_PROGRESS), settled=(a_settlement(CALL, ToolResult.succeeded(LONG)),)),
        Step(run=a_run(status=RunStatus.IN_PROGRESS), recorded=(CALL,) * 100),
    ],
    ids=["long result", "picture", "long reply", "long outcome", "many calls"],
)
def test_a_step_of_much_text_or_many_rows_is_not(step: Step) -> None:
    assert not is_small_step(step)


def test_a_start_is_small_unless_it_touches_other_runs_or_forgets_old_keys() -> None:
    key = IdempotencyKey(key="one", body_digest="digest")
    pictured = replace(a_run(), input=(TextContent(text="What is this?"), PICTURE))
    starts: dict[str, NewRun] = {
        "queued": a_new_run(),
        "refused": a_new_run(strategy=MultitaskStrategy.REJECT),
        "interrupting": a_new_run(strategy=MultitaskStrategy.INTERRUPT),
        "rolling back": a_new_run(strategy=MultitaskStrategy.ROLLBACK),
        "with a key": a_new_run(idempotency=key),
        "with a picture": a_new_run(pictured),
    }

    assert [name for name, new in starts.items() if is_small_start(new)] == ["queued", "refused"]
