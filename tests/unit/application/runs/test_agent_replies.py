"""What a run comes to for whoever called its agent as a tool."""

from dataclasses import replace

import pytest

from application.runs.agent_reply import progress_of, reply_of
from domain.ids import AgentId, GatewaySessionId, ToolCallId
from domain.json_value import JsonObject
from domain.runs.called_by import CalledBy
from domain.runs.events import RunEvent, RunEventType
from domain.runs.limits import IncompleteReason
from domain.runs.run import Run, RunError, RunStatus
from domain.tools.result import ToolOutcome
from tests.builders import RUN, START, a_run

WORKING = a_run().claimed(at=START)


def ended(status: RunStatus, *, output: str | None = None) -> Run:
    failed, incomplete = status is RunStatus.FAILED, status is RunStatus.INCOMPLETE
    return WORKING.ended(
        status,
        at=START,
        output=output,
        error=RunError(code="model_unreachable", detail="Nobody answers.") if failed else None,
        incomplete_reason=IncompleteReason.MAX_TURNS if incomplete else None,
    )


@pytest.mark.requirement("F5")
@pytest.mark.parametrize(
    ("run", "outcome", "code"),
    [
        (ended(RunStatus.COMPLETED, output="42"), ToolOutcome.SUCCEEDED, None),
        (ended(RunStatus.COMPLETED), ToolOutcome.SUCCEEDED, None),
        (ended(RunStatus.INCOMPLETE, output="4"), ToolOutcome.SUCCEEDED, None),
        (ended(RunStatus.INCOMPLETE), ToolOutcome.SUCCEEDED, None),
        (ended(RunStatus.FAILED), ToolOutcome.FAILED, "agent_run_failed"),
        (ended(RunStatus.CANCELLED), ToolOutcome.FAILED, "agent_run_cancelled"),
        (ended(RunStatus.HALTED), ToolOutcome.FAILED, "agent_run_halted"),
        (WORKING, ToolOutcome.SUCCEEDED, None),
    ],
)
def test_an_answer_says_how_the_run_stands(run: Run, outcome: ToolOutcome, code: str | None) -> None:
    reply = reply_of(run)
    assert (reply.result.outcome, reply.result.error_code) == (outcome, code)
    assert reply.run is not None
    assert (reply.run["run_id"], reply.run["status"]) == (RUN, run.status.value)


@pytest.mark.requirement("F5", "A5")
def test_an_answer_tells_why_it_is_none_or_not_whole() -> None:
    assert reply_of(ended(RunStatus.COMPLETED, output="42")).result.text == "42"
    incomplete = reply_of(ended(RunStatus.INCOMPLETE, output="4")).result.text
    assert incomplete.startswith("4\n")
    assert "max_turns" in incomplete
    assert "Nobody answers." in reply_of(ended(RunStatus.FAILED)).result.text


@pytest.mark.requirement("F5")
def test_progress_names_tools_and_keeps_arguments_to_itself() -> None:
    params: JsonObject = {"query": "a secret"}
    event = RunEvent(
        run_id=RUN,
        seq=3,
        type=RunEventType.TOOL_STARTED,
        at=START,
        data={"tool_call_id": "call_1", "name": "internet_search", "params": params},
    )
    assert progress_of(event) == "calls internet_search"
    assert progress_of(replace(event, type=RunEventType.MESSAGE_DELTA, data={"text": "words"})) is None


@pytest.mark.requirement("F5")
def test_a_run_says_who_called_its_agent_and_others_metadata_say_nothing() -> None:
    called_by = CalledBy(gateway_session_id=GatewaySessionId("gws_1"), tool_call_id=ToolCallId("call_1"), depth=2)
    assert CalledBy.of(called_by.metadata()) == called_by
    by_a_run = replace(called_by, gateway_session_id=None, run_id=RUN, agent_id=AgentId("agt_1"))
    assert CalledBy.of(by_a_run.metadata()) == by_a_run
    told: JsonObject = {"gateway_session_id": "gws_1", "tool_call_id": "call_1"}
    others: list[JsonObject] = [
        {},
        {"called_by": "me"},
        {"called_by": told},
        {"called_by": {**told, "depth": -5}},
        {"called_by": {**told, "depth": "1"}},
        {"called_by": {"tool_call_id": "call_1", "depth": 1}},
    ]
    assert [CalledBy.of(metadata) for metadata in others] == [None] * len(others)
