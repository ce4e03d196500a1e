"""Noticing that a tool fails in the same way turn after turn."""

import pytest

from domain.runs.repeated_failure import repeatedly_failing_tool
from domain.threads.message import Message, Role, ToolResultContent
from domain.tools.result import OUTCOME_UNKNOWN
from tests.builders import RUN, a_message, a_run_id, a_tool_call


def turn(number: int, *results: tuple[str, str, bool], run_number: int = 1) -> tuple[Message, Message]:
    """One reply and the results of its calls: name, text, whether it failed."""
    run_id = a_run_id(run_number)
    contents = tuple(
        ToolResultContent(tool_id=a_tool_call(index, turn=number).id, tool_name=name, result=text, is_error=failed)
        for index, (name, text, failed) in enumerate(results)
    )
    return (
        a_message(2 * number, "Let me try.", run_id=run_id, role=Role.ASSISTANT),
        a_message(2 * number + 1, run_id=run_id, role=Role.TOOL, content=contents),
    )


BROKEN = ("read", "no such file", True)
OTHER = ("read", "permission denied", True)
FINE = ("list", "a.txt", False)
INTERRUPTED = ("read", OUTCOME_UNKNOWN, True)


@pytest.mark.requirement("A8")
@pytest.mark.parametrize(
    ("turns", "tool"),
    [
        ((), None),
        (((BROKEN,), (BROKEN,)), None),
        (((BROKEN,), (BROKEN,), (BROKEN,)), "read"),
        (((FINE,), (BROKEN, FINE), (FINE, BROKEN), (BROKEN,)), "read"),
        (((BROKEN,), (FINE,), (BROKEN,), (BROKEN,)), None),
        (((BROKEN,), (OTHER,), (BROKEN,)), None),
        (((BROKEN,), (BROKEN,), (("write", "no such file", True),)), None),
        (((BROKEN,), (BROKEN,), (("read", "no such file", False),)), None),
        (((FINE,), (FINE,), (FINE,)), None),
        (
            tuple((("read", f"failed unexpectedly (reference {reference})", True),) for reference in ("a", "b", "c")),
            "read",
        ),
    ],
)
def test_the_same_failure_in_three_turns_in_a_row_is_noticed(
    turns: tuple[tuple[tuple[str, str, bool], ...], ...], tool: str | None
) -> None:
    transcript = [message for number, results in enumerate(turns, 1) for message in turn(number, *results)]
    assert repeatedly_failing_tool([a_message(run_id=RUN), *transcript], RUN) == tool


@pytest.mark.requirement("A8")
def test_failures_of_earlier_runs_on_the_thread_do_not_count() -> None:
    transcript = [*turn(1, BROKEN, run_number=1), *turn(2, BROKEN, run_number=2), *turn(3, BROKEN, run_number=2)]
    assert repeatedly_failing_tool(transcript, a_run_id(2)) is None


@pytest.mark.requirement("A8")
@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    "turns",
    [
        ((INTERRUPTED,), (INTERRUPTED,), (INTERRUPTED,)),
        ((BROKEN,), (BROKEN,), (INTERRUPTED,)),
        ((BROKEN,), (INTERRUPTED,), (BROKEN,), (BROKEN,)),
    ],
)
def test_a_call_that_the_end_of_a_worker_interrupted_is_no_failure_of_its_tool(
    turns: tuple[tuple[tuple[str, str, bool], ...], ...],
) -> None:
    transcript = [message for number, results in enumerate(turns, 1) for message in turn(number, *results)]
    assert repeatedly_failing_tool([a_message(run_id=RUN), *transcript], RUN) is None
