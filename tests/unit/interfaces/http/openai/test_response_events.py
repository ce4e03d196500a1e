"""ResponseEvents: the events of a response, from the events of its run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import pytest

from domain.json_value import JsonObject, JsonValue
from domain.runs.events import RunEvent, RunEventType
from interfaces.http.openai.response_events import ResponseEvents
from interfaces.http.openai.response_ids import Place
from tests.builders import RUN, START, a_run

pytestmark = pytest.mark.requirement("X1")

Happened = tuple[RunEventType, JsonObject]
USAGE: JsonObject = {"input_tokens": 5, "output_tokens": 2, "cached_tokens": 1, "reasoning_tokens": 1}
QUEUED: Happened = (RunEventType.RUN_QUEUED, {})
STARTED: Happened = (RunEventType.RUN_STARTED, {"attempt": 1})
COMPLETED: Happened = (RunEventType.RUN_COMPLETED, {})


def delta(text: str, message_id: str = "msg_1") -> Happened:
    return RunEventType.MESSAGE_DELTA, {"message_id": message_id, "text": text}


def completed(text: str, *uses: JsonObject, message_id: str = "msg_1") -> Happened:
    said: list[JsonValue] = [{"type": "text", "text": text}] if text else []
    message: JsonObject = {"id": message_id, "role": "assistant", "content": [*said, *uses]}
    return RunEventType.MESSAGE_COMPLETED, {"message": message, "usage": USAGE}


def use(identifier: str, name: str = "mcp__files__read") -> JsonObject:
    return {"type": "tool_use", "id": identifier, "name": name, "params": {"a": 1}}


def started(identifier: str, name: str = "mcp__files__read") -> Happened:
    return RunEventType.TOOL_STARTED, {"tool_call_id": identifier, "name": name, "params": {"a": 1}}


def results(*given: tuple[str, bool]) -> Happened:
    content: list[JsonValue] = [
        {"type": "tool_result", "tool_id": id_, "tool_name": "mcp__files__read", "result": "hi", "is_error": failed}
        for id_, failed in given
    ]
    return RunEventType.MESSAGE_COMPLETED, {"message": {"id": "msg_t", "role": "tool", "content": content}}


def waits(*pending: JsonObject) -> Happened:
    return RunEventType.RUN_REQUIRES_ACTION, {"pending": [*pending]}


def told(
    happened: Sequence[Happened],
    *,
    part: int = 0,
    schema: JsonObject | None = None,
    request: JsonObject | None = None,
) -> tuple[list[JsonObject], ResponseEvents]:
    run = replace(a_run(), output_schema=schema, client_request=request)
    events = ResponseEvents(run=run, place=Place(run_id=RUN, part=part), address="http://here")
    shown = [
        event
        for seq, (kind, data) in enumerate(happened, 1)
        for event in events.of(RunEvent(run_id=RUN, seq=seq, type=kind, at=START, data=data))
    ]
    assert [event["sequence_number"] for event in shown] == list(range(len(shown)))
    return shown, events


def output(events: ResponseEvents) -> list[JsonObject]:
    return cast("list[JsonObject]", events.view()["output"])


def test_text_comes_in_pieces_and_what_was_not_streamed_at_its_end() -> None:
    shown, events = told([QUEUED, STARTED, delta("Hel"), delta("lo"), completed("Hello!"), COMPLETED])
    deltas = [event["delta"] for event in shown if event["type"] == "response.output_text.delta"]
    assert deltas == ["Hel", "lo", "!"]
    assert [event["type"] for event in shown if str(event["type"]).count(".") == 1] == [
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.completed",
    ]
    assert output(events)[0]["content"] == [
        {"type": "output_text", "text": "Hello!", "annotations": [], "logprobs": []}
    ]
    assert events.view()["usage"] == {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 7,
    }


def test_a_reply_that_was_discarded_leaves_no_text_in_the_response() -> None:
    discarded = RunEventType.MESSAGE_DISCARDED, cast(JsonObject, {"message_id": "msg_0", "reason": "worker_lost"})
    again = completed("Whole.", message_id="msg_1")
    _, events = told([QUEUED, STARTED, delta("Ha", "msg_0"), STARTED, discarded, again, COMPLETED])
    assert [item["status"] for item in output(events)] == ["incomplete", "completed"]
    texts = [part["text"] for item in output(events) for part in cast("list[JsonObject]", item["content"])]
    assert texts == ["", "Whole."]


def test_reasoning_is_an_item_with_a_summary_that_ends_with_its_message() -> None:
    thought = RunEventType.REASONING_DELTA, cast(JsonObject, {"message_id": "msg_1", "text": "Hm."})
    shown, events = told([QUEUED, STARTED, thought, thought, delta("Yes"), completed("Yes"), COMPLETED])
    assert [item["type"] for item in output(events)] == ["reasoning", "message"]
    assert output(events)[0]["summary"] == [{"type": "summary_text", "text": "Hm.Hm."}]
    kinds = [str(event["type"]) for event in shown if "reasoning" in str(event["type"])]
    assert kinds == [
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
    ]


def test_a_call_that_another_worker_repeats_is_one_item_and_a_failure_is_its_error() -> None:
    calls = [started("call_a"), STARTED, started("call_a"), results(("call_a", True))]
    _, events = told([QUEUED, STARTED, completed("", use("call_a")), *calls, completed("Oh."), COMPLETED])
    call, _ = output(events)
    assert (call["type"], call["server_label"], call["name"], call["status"]) == ("mcp_call", "files", "read", "failed")
    assert (call["output"], call["error"]) == (None, {"type": "mcp_tool_execution_error", "content": "hi"})


def test_a_call_that_policy_blocked_is_an_item_though_it_never_began() -> None:
    _, events = told([QUEUED, STARTED, completed("", use("call_a", "sudo")), results(("call_a", True)), COMPLETED])
    [call] = output(events)
    assert (call["server_label"], call["name"], call["arguments"]) == ("dragoman", "sudo", '{"a": 1}')


def test_a_response_ends_where_the_run_waits_and_the_next_part_begins_there() -> None:
    first = [QUEUED, STARTED, completed("", use("call_a"), use("call_b", "ask")), started("call_a")]
    asked: JsonObject = use("call_b", "ask")
    rest = [(RunEventType.RUN_RESUMED, {}), STARTED, results(("call_a", False), ("call_b", False)), completed("Ok.")]
    happened = [*first, waits(asked), *rest, COMPLETED]
    shown, events = told(happened)
    assert [(item["type"], item["status"]) for item in output(events)] == [
        ("mcp_call", "incomplete"),
        ("function_call", "completed"),
    ]
    assert shown[-1]["type"] == "response.completed"
    later, events = told(happened, part=1)
    assert [(item["type"], item["status"]) for item in output(events)] == [
        ("mcp_call", "completed"),
        ("message", "completed"),
    ]
    assert events.view()["previous_response_id"] == Place(run_id=RUN).id
    assert [result["tool_id"] for result in events.inputs] == ["call_b"]
    assert later[0]["type"] == "response.created"
    assert not told(happened, part=2)[1].exists


@pytest.mark.parametrize("answer", [RunEventType.TOOL_EXECUTED, RunEventType.TOOL_FAILED, RunEventType.TOOL_BLOCKED])
@pytest.mark.parametrize("background", [True, False])
def test_a_response_after_outputs_or_a_denied_approval_has_the_background_of_its_own_request(
    answer: RunEventType, background: bool
) -> None:
    given = answer, cast(JsonObject, {"tool_call_id": "call_b", "name": "ask"})
    resumed = RunEventType.RUN_RESUMED, cast(JsonObject, {"client_request": {"background": background}})
    happened = [QUEUED, STARTED, completed("", use("call_b", "ask")), waits(use("call_b", "ask")), given, resumed]
    shown, events = told(happened, part=1, request={"background": not background})
    assert [event["type"] for event in shown] == ["response.created", "response.queued"]
    assert [cast(JsonObject, event["response"])["background"] for event in shown] == [background] * 2
    assert events.view()["background"] is background


def test_a_question_of_a_server_is_a_message_with_a_link() -> None:
    question: JsonObject = {**use("call_a"), "elicitation": {"message": "Which?"}}
    _, events = told([QUEUED, STARTED, completed("", use("call_a")), waits(question)])
    [item] = output(events)
    [part] = cast("list[JsonObject]", item["content"])
    assert f"http://here/console/runs/{RUN}" in str(part["text"])


def test_with_a_schema_only_the_last_reply_is_shown_as_its_object() -> None:
    replies = [delta("Lis"), completed("Lisbon."), completed('So: {"city": "Lisbon"}', message_id="msg_2")]
    _, events = told([QUEUED, STARTED, *replies, COMPLETED], schema={"type": "object"})
    [item] = output(events)
    [part] = cast("list[JsonObject]", item["content"])
    assert part["text"] == '{"city": "Lisbon"}'


@pytest.mark.parametrize(
    ("end", "status", "why"),
    [
        ((RunEventType.RUN_INCOMPLETE, {"reason": "max_turns"}), "incomplete", "max_output_tokens"),
        ((RunEventType.RUN_INCOMPLETE, {"reason": "refusal"}), "incomplete", "content_filter"),
        ((RunEventType.RUN_HALTED, {"reason": "canary"}), "incomplete", "content_filter"),
        ((RunEventType.RUN_CANCELLED, {}), "cancelled", None),
        ((RunEventType.RUN_FAILED, {"error": {"code": "x", "detail": "It broke."}}), "failed", None),
    ],
)
def test_other_ends_say_why_and_leave_nothing_open(end: Happened, status: str, why: str | None) -> None:
    shown, events = told([QUEUED, STARTED, delta("Ha"), started("call_a"), end])
    view = events.view()
    assert (view["status"], view["incomplete_details"]) == (status, None if why is None else {"reason": why})
    assert (view["error"] is None) == (status != "failed")
    assert [item["status"] for item in output(events)] == ["incomplete", "incomplete"]
    added = [event for event in shown if event["type"] == "response.output_item.added"]
    assert len(added) == len([event for event in shown if event["type"] == "response.output_item.done"])


def test_replies_before_calls_are_commentary_and_the_last_one_is_the_answer() -> None:
    call = use("call_1")
    happened = [QUEUED, STARTED, delta("Let me look."), completed("Let me look.", call), started("call_1")]
    answered = [results(("call_1", False)), completed("Found.", message_id="msg_2"), COMPLETED]
    _, response = told([*happened, *answered])
    output = cast("list[JsonObject]", response.view()["output"])
    assert [item.get("phase") for item in output] == ["commentary", None, "final_answer"]


def test_a_response_has_numbers_where_open_responses_requires_them() -> None:
    _, response = told([QUEUED, STARTED, completed("Hi."), COMPLETED])
    view = response.view()
    assert [type(view[name]) for name in ("created_at", "completed_at")] == [int, int]
    assert {name: view[name] for name in ("temperature", "top_p", "presence_penalty", "frequency_penalty")} == {
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
    }
