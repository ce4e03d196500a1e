"""Events of AG-UI, from the events of a run."""

from collections.abc import Sequence
from typing import cast

import pytest

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from interfaces.http.ag_ui.events import AgUiEvents
from interfaces.http.chats.shown import RunShown
from tests.builders import RUN, START, a_run
from tests.unit.interfaces.http.openai.test_response_events import (
    COMPLETED,
    STARTED,
    Happened,
    completed,
    delta,
    results,
    started,
    use,
    waits,
)

pytestmark = pytest.mark.requirement("X4")

CALL = "call_a"
OWN = use("call_b", "show")
ASKS = cast(JsonObject, {**use(CALL), "approval_id": "apr_1", "expires_at": "2026-01-02T00:00:00Z", "reason": "Ask."})


def told(happened: Sequence[Happened], *, known: int = 0, repeats: bool = False) -> list[JsonObject]:
    """The events after the first `known` of the run."""
    shown = RunShown(run=a_run())
    events = AgUiEvents(run=a_run(), thread_id="t1", run_id="r1", repeats=repeats)
    given: list[JsonObject] = []
    for seq, (kind, data) in enumerate(happened, 1):
        for item in shown.of(RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data)):
            if seq <= known:
                events.skip(item)
            else:
                given += events.of(item)
    return [*given, *events.end(shown)]


def kinds(events: Sequence[JsonObject]) -> list[str]:
    return [str(event["type"]) for event in events]


def test_reasoning_ends_where_text_begins_and_calls_belong_to_their_reply() -> None:
    thought = RunEventType.REASONING_DELTA, cast(JsonObject, {"message_id": "msg_1", "text": "Hm."})
    looks = [thought, delta("Look"), completed("Looking.", use(CALL)), started(CALL), results((CALL, True))]
    events = told([*looks, completed("Found.", message_id="msg_2"), COMPLETED])
    assert kinds(events) == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_END",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "TOOL_CALL_START",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_END",
        "TOOL_CALL_RESULT",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert (events[9]["parentMessageId"], events[10]["delta"]) == ("msg_1", '{"a": 1}')
    assert (events[12]["content"], events[12]["metadata"]) == ("hi", {"failed": True})
    assert events[-1]["usage"] == [{"inputTokens": 10, "outputTokens": 4}]


def test_a_discarded_reply_ends() -> None:
    lost = RunEventType.MESSAGE_DISCARDED, cast(JsonObject, {"message_id": "msg_0", "reason": "worker_lost"})
    events = told([delta("Ha", "msg_0"), STARTED, lost, completed("Whole."), COMPLETED])
    assert kinds(events)[2:4] == ["TEXT_MESSAGE_END", "TEXT_MESSAGE_START"]


def test_what_waits_for_people_is_an_interrupt_until_it_is_decided() -> None:
    before = [completed("", use(CALL)), waits(ASKS, OWN)]
    [interrupt] = cast("list[JsonObject]", cast(JsonObject, told(before)[-1]["outcome"])["interrupts"])
    assert {name: interrupt[name] for name in ("id", "reason", "message", "expiresAt", "metadata")} == {
        "id": f"{CALL}:apr_1",
        "reason": "tool_call",
        "message": "Ask.",
        "expiresAt": "2026-01-02T00:00:00Z",
        "metadata": {"approvalId": "apr_1"},
    }
    link = cast(
        JsonObject,
        {**use(CALL), "elicitation": {"request_id": "sign", "message": "Sign in.", "url": "https://example.com"}},
    )
    [asked] = cast(
        "list[JsonObject]", cast(JsonObject, told([started(CALL), waits(link)])[-1]["outcome"])["interrupts"]
    )
    assert (asked["reason"], asked["metadata"]) == ("input_required", {"url": "https://example.com"})
    own = told([*before, started(CALL), waits(OWN)])[-1]
    assert own["outcome"] == {"type": "success", "pendingToolCallIds": ["call_b"]}


def test_calls_of_an_earlier_stream_begin_again_without_arguments_and_own_results_are_not_repeated() -> None:
    happened = [completed("", use(CALL), OWN), waits(ASKS, OWN), started(CALL)]
    happened += [results((CALL, False), ("call_b", False)), COMPLETED]
    rest = told(happened, known=2)
    assert kinds(rest) == ["TOOL_CALL_START", "TOOL_CALL_END", "TOOL_CALL_RESULT", "RUN_FINISHED"]
    whole = told(happened, repeats=True)
    assert [event["toolCallId"] for event in whole if event["type"] == "TOOL_CALL_RESULT"] == [CALL, "call_b"]


def test_progress_is_an_activity_of_the_call() -> None:
    progress = RunEventType.TOOL_PROGRESS, cast(JsonObject, {"tool_call_id": CALL, "progress": 1.0})
    assert told([started(CALL), progress])[-1] == {
        "type": "ACTIVITY_SNAPSHOT",
        "messageId": f"{CALL}_progress",
        "activityType": "PROGRESS",
        "content": {"toolCallId": CALL, "progress": 1.0},
    }


@pytest.mark.parametrize(
    ("end", "last"),
    [
        (
            (RunEventType.RUN_INCOMPLETE, {"reason": "max_turns"}),
            {"outcome": {"type": "success"}, "metadata": {"reason": "max_turns"}},
        ),
        ((RunEventType.RUN_CANCELLED, {}), {"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}),
        (
            (RunEventType.RUN_FAILED, {"error": {"code": "model_failed", "detail": "It broke."}}),
            {"type": "RUN_ERROR", "message": "It broke.", "code": "model_failed"},
        ),
    ],
)
def test_a_stream_says_how_the_run_ended(end: Happened, last: JsonObject) -> None:
    *before, ended = told([delta("Ha"), end])
    assert before[-1]["type"] == "TEXT_MESSAGE_END"
    assert {name: ended[name] for name in last} == last
