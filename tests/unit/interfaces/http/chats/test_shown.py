"""RunShown: what a chat shows, from the events of a run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from interfaces.http.chats.shown import (
    ApprovalAsked,
    ApprovalGiven,
    CallBegan,
    CallEnded,
    Progressed,
    QuestionAsked,
    ReplyBegan,
    ReplyDropped,
    ReplyEnded,
    RunShown,
    Said,
    Shown,
    Thought,
)
from tests.builders import RUN, START, a_run
from tests.unit.interfaces.http.openai.test_response_events import (
    COMPLETED,
    QUEUED,
    STARTED,
    Happened,
    completed,
    delta,
    results,
    started,
    use,
    waits,
)

pytestmark = pytest.mark.requirement("X3", "X4")

CALL = "call_a"
ASKS = cast(JsonObject, {**use(CALL), "approval_id": "apr_1", "expires_at": "2026-01-02T00:00:00Z", "reason": "Ask."})


def told(happened: Sequence[Happened], *, schema: JsonObject | None = None) -> tuple[list[Shown], RunShown]:
    shown = RunShown(run=replace(a_run(), output_schema=schema))
    items = [
        item
        for seq, (kind, data) in enumerate(happened, 1)
        for item in shown.of(RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data))
    ]
    return items, shown


def blocked(call_id: str = CALL) -> Happened:
    return RunEventType.TOOL_BLOCKED, {"tool_call_id": call_id, "name": "x", "reason": "approval_denied"}


def test_text_comes_in_pieces_and_the_rest_with_the_whole_message() -> None:
    thought = RunEventType.REASONING_DELTA, cast(JsonObject, {"message_id": "msg_1", "text": "Hm."})
    items, shown = told([QUEUED, STARTED, thought, delta("Hel"), completed("Hello!"), COMPLETED])
    assert items == [
        ReplyBegan(message_id="msg_1"),
        Thought(message_id="msg_1", text="Hm."),
        Said(message_id="msg_1", text="Hel"),
        Said(message_id="msg_1", text="lo!"),
        ReplyEnded(message_id="msg_1"),
        ReplyEnded(message_id="msg_1"),
    ]
    assert (shown.spent.input_tokens, shown.spent.output_tokens) == (5, 2)
    assert shown.rest is not None
    assert shown.rest.type is RunEventType.RUN_COMPLETED


def test_a_discarded_reply_is_taken_back_and_one_that_was_not_shown_is_not() -> None:
    lost, unseen = (
        (RunEventType.MESSAGE_DISCARDED, cast(JsonObject, {"message_id": message_id, "reason": "worker_lost"}))
        for message_id in ("msg_0", "msg_9")
    )
    items, _ = told([STARTED, delta("Ha", "msg_0"), STARTED, unseen, lost, completed("Whole."), COMPLETED])
    assert items[2:5] == [
        ReplyDropped(message_id="msg_0"),
        ReplyBegan(message_id="msg_1"),
        Said(message_id="msg_1", text="Whole."),
    ]


def test_with_a_schema_the_object_of_the_last_reply_is_the_answer() -> None:
    first, last = completed("Let me see.", use(CALL)), completed('So: {"city": "Lisbon"}', message_id="msg_2")
    happened = [delta("Let"), first, started(CALL), results((CALL, False)), delta("So", "msg_2"), last, COMPLETED]
    items, _ = told(happened, schema={"type": "object"})
    assert [item.text for item in items if isinstance(item, Said)] == ['{"city": "Lisbon"}']


def test_a_call_that_another_worker_repeats_begins_once_and_ends_with_its_result() -> None:
    progress = RunEventType.TOOL_PROGRESS, cast(JsonObject, {"tool_call_id": CALL, "progress": 1.0, "total": 2.0})
    items, _ = told(
        [completed("", use(CALL)), started(CALL), STARTED, started(CALL), progress, results((CALL, True)), COMPLETED]
    )
    assert items[2:5] == [
        CallBegan(call_id=CALL, name="mcp__files__read", params={"a": 1}, by_client=False),
        Progressed(call_id=CALL, data={"progress": 1.0, "total": 2.0}),
        CallEnded(call_id=CALL, text="hi", failed=True),
    ]


def test_a_call_that_policy_blocked_is_shown_with_its_result() -> None:
    items, _ = told([completed("", use(CALL)), blocked(), results((CALL, True)), COMPLETED])
    assert [type(item) for item in items[2:4]] == [CallBegan, CallEnded]


@pytest.mark.parametrize(("decided", "approved"), [(started(CALL), True), (blocked(), False)])
def test_a_decision_is_known_by_what_happens_to_the_call(decided: Happened, approved: bool) -> None:
    again = waits(ASKS, use("call_b", "show"))
    result = results((CALL, not approved))
    items, _ = told([completed("", use(CALL)), waits(ASKS), again, STARTED, decided, result])
    assert items[2:] == [
        CallBegan(call_id=CALL, name="mcp__files__read", params={"a": 1}, by_client=False),
        ApprovalAsked(call_id=CALL, use=ASKS),
        CallBegan(call_id="call_b", name="show", params={"a": 1}, by_client=True),
        ApprovalGiven(call_id=CALL, approved=approved),
        CallEnded(call_id=CALL, text="hi", failed=not approved, denied=not approved),
    ]


def test_an_approved_call_of_the_client_begins_again_as_its_own() -> None:
    items, _ = told([completed("", use(CALL)), waits(ASKS), waits(use(CALL))])
    assert items[4:] == [
        ApprovalGiven(call_id=CALL, approved=True),
        CallBegan(call_id=CALL, name="mcp__files__read", params={"a": 1}, by_client=True),
    ]


def test_a_question_of_a_server_belongs_to_its_call() -> None:
    asks = cast(JsonObject, {**use(CALL), "elicitation": {"message": "Which?"}})
    items, shown = told([completed("", use(CALL)), started(CALL), waits(asks)])
    assert items[-1] == QuestionAsked(call_id=CALL, use=asks)
    assert shown.rest is not None


def test_what_a_run_waits_for_is_that_of_the_stored_run_where_no_event_says_so() -> None:
    other = cast(JsonObject, {**use("call_b", "show"), "approval_id": "apr_2", "expires_at": "x", "reason": "Ask."})
    settled = RunEventType.TOOL_EXECUTED, cast(JsonObject, {"tool_call_id": "call_c", "name": "x"})
    _, shown = told([waits(ASKS, other, use("call_c")), settled])
    assert (shown.rest is not None, len(shown.pending)) == (True, 3)
    assert list(shown.waits([ASKS, use("call_b", "show")])) == [
        ApprovalGiven(call_id="call_b", approved=True),
        CallBegan(call_id="call_b", name="show", params={"a": 1}, by_client=True),
    ]
    question = cast(JsonObject, {**use(CALL), "elicitation": {"request_id": "q2", "message": "Which?"}})
    assert list(shown.waits([question])) == [QuestionAsked(call_id=CALL, use=question)]
    assert list(shown.waits([question])) == []
    list(shown.of(RunEvent(run_id=RUN, seq=9, type=RunEventType.RUN_RESUMED, at=START, data={})))
    assert (shown.rest, shown.pending) == (None, ())
