"""Events of the Responses API become one reply."""

import json

import pytest

from application.models.ports import ModelError, ModelReply, RequestedCall
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.responses_reply import ResponsesReply

REASONING: dict[str, object] = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA-final"}
USAGE = {
    "input_tokens": 90,
    "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 12},
    "output_tokens": 40,
    "output_tokens_details": {"reasoning_tokens": 33},
    "total_tokens": 130,
}


def an_event(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, "sequence_number": 1, **fields}, separators=(",", ":")).encode()


def a_text(delta: str, index: int = 0, kind: str = "output_text") -> bytes:
    return an_event(f"response.{kind}.delta", delta=delta, output_index=index, content_index=0, item_id="msg_1")


def a_call(name: str | None, arguments: str) -> dict[str, object]:
    return {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}


def a_message(text: str, kind: str = "output_text") -> dict[str, object]:
    part = {"type": kind, "refusal" if kind == "refusal" else "text": text}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}


def done(index: int, item: dict[str, object]) -> bytes:
    return an_event("response.output_item.done", output_index=index, item=item)


def ended(status: str = "completed", **fields: object) -> bytes:
    return an_event(f"response.{status}", response={"id": "resp_1", "status": status, "usage": USAGE, **fields})


def read(*events: bytes) -> ModelReply:
    reply = ResponsesReply("openai:x", origin="here")
    for event in events:
        reply.read_event(event)
    return reply.reply()


def read_whole(**fields: object) -> ModelReply:
    reply = ResponsesReply("openai:x")
    text = reply.read_whole(json.dumps({"id": "resp_1", "status": "completed", "usage": USAGE, **fields}).encode())
    assert reply.reply().text == text
    return reply.reply()


@pytest.mark.requirement("A10", "H2")
def test_text_usage_and_the_reason_are_put_together() -> None:
    reply = read(
        an_event("response.created", response={"status": "in_progress", "output": [], "instructions": "long"}),
        an_event("response.output_item.added", output_index=0, item=a_message("")),
        a_text("Hel"),
        a_text("lo"),
        done(0, a_message("Hello")),
        ended(),
    )
    assert reply.text == "Hello"
    assert reply.usage == ModelUsage(
        input_tokens=90, output_tokens=40, cached_tokens=64, cache_write_tokens=12, reasoning_tokens=33
    )
    assert reply.finish_reason is FinishReason.STOP


@pytest.mark.requirement("H2")
def test_calls_are_those_of_finished_items_in_their_order() -> None:
    reply = read(
        an_event("response.output_item.added", output_index=1, item=a_call("one", "")),
        an_event("response.function_call_arguments.delta", output_index=1, delta='{"x":'),
        done(2, a_call("two", "")),
        done(1, a_call("one", '{"x":1}')),
        done(0, REASONING),
        ended(),
    )
    assert reply.calls == (RequestedCall(name="one", arguments={"x": 1}), RequestedCall(name="two", arguments={}))
    assert reply.finish_reason is FinishReason.TOOL_CALLS


def test_messages_of_one_reply_are_divided_by_an_empty_line() -> None:
    reply = read(a_text("First "), a_text("look."), done(0, a_message("First look.")), a_text("Done.", 1), ended())
    assert reply.text == "First look.\n\nDone."


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    ("reason", "meant"),
    [
        ("max_output_tokens", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("something new", FinishReason.LENGTH),
    ],
)
def test_an_incomplete_response_says_why(reason: str, meant: FinishReason) -> None:
    reply = read(a_text("Hel"), ended("incomplete", incomplete_details={"reason": reason}))
    assert (reply.text, reply.finish_reason) == ("Hel", meant)


@pytest.mark.requirement("H2", "A9")
def test_a_call_in_which_the_response_was_cut_is_malformed() -> None:
    cut = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    (whole, broken) = read(done(0, a_call("one", "{}")), done(1, a_call("two", '{"x": [1')), cut).calls
    assert whole.malformed is None
    assert broken.malformed == '{"x": [1'
    (empty,) = read(done(0, a_call("one", "")), cut).calls
    assert empty.malformed == ""


@pytest.mark.requirement("H2")
def test_a_refusal_is_text_and_the_reason() -> None:
    reply = read(a_text("I can", kind="refusal"), a_text("not.", kind="refusal"), ended())
    assert (reply.text, reply.finish_reason) == ("I cannot.", FinishReason.REFUSAL)
    whole = read_whole(output=[a_message("I cannot.", "refusal")])
    assert (whole.text, whole.finish_reason) == ("I cannot.", FinishReason.REFUSAL)


def test_a_response_without_a_stream_is_read_the_same_way() -> None:
    reply = read_whole(output=[REASONING, a_message("Hello"), a_call("one", '{"x":1}')])
    assert reply.text == "Hello"
    assert reply.calls == (RequestedCall(name="one", arguments={"x": 1}),)
    assert reply.usage.input_tokens == 90
    cut = read_whole(status="incomplete", output=[a_call("one", "{")], incomplete_details={"reason": "steered"})
    assert (cut.finish_reason, cut.calls[0].malformed) == (FinishReason.LENGTH, "{")


def test_items_that_only_the_last_event_names_are_read_from_it() -> None:
    reply = read(done(0, REASONING), ended(output=[REASONING, a_message("Hello"), a_call("one", "{}")]))
    assert (reply.text, [call.name for call in reply.calls]) == ("Hello", ["one"])


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    ("event", "code", "retryable"),
    [
        (ended("failed", error={"code": "server_error", "message": "Try again."}), "model_unavailable", True),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "Slow."}), "model_rate_limited", True),
        (ended("failed", error={"code": "invalid_prompt", "message": "No."}), "model_rejected", False),
        (ended("failed", error={"code": "image_too_large", "message": "No."}), "model_rejected", False),
        (ended("failed", error=None), "model_unavailable", True),
        (
            ended("failed", error={"code": "context_length_exceeded", "message": "Too long."}),
            "model_context_exceeded",
            False,
        ),
        (an_event("error", code="server_is_overloaded", message="Busy.", param=None), "model_unavailable", True),
        (an_event("error", error={"type": "invalid_request_error", "message": "No."}), "model_rejected", False),
        (an_event("response.completed", response={"status": "cancelled"}), "model_unavailable", True),
    ],
)
def test_a_failure_in_the_stream_is_an_error(event: bytes, code: str, retryable: bool) -> None:
    with pytest.raises(ModelError) as raised:
        read(a_text("Hel"), event)
    assert (raised.value.code, raised.value.retryable) == (code, retryable)


@pytest.mark.requirement("H6")
def test_what_the_provider_said_about_a_failure_is_kept() -> None:
    with pytest.raises(ModelError) as raised:
        read(ended("failed", error={"code": "invalid_prompt", "message": "It was flagged."}))
    said = raised.value.provider_error
    assert said is not None
    assert (said.status, said.code, said.message) == (None, "invalid_prompt", "It was flagged.")


@pytest.mark.parametrize(
    "events",
    [
        (a_text("Hel"),),
        (b"{",),
        (b'{"type": 7}',),
        (an_event("response.output_text.delta", delta=7),),
        (an_event("response.output_item.done", item=7),),
        (an_event("response.completed"),),
        (done(0, a_call(None, "{}")), ended()),
    ],
)
def test_what_breaks_the_protocol_is_an_invalid_reply(events: tuple[bytes, ...]) -> None:
    with pytest.raises(ModelError) as raised:
        read(*events)
    assert raised.value.code == "model_invalid_reply"


def test_what_is_no_response_is_an_invalid_reply() -> None:
    with pytest.raises(ModelError) as raised:
        ResponsesReply("openai:x").read_whole(b"[]")
    assert raised.value.code == "model_invalid_reply"


def test_a_ping_is_no_progress_and_unknown_events_and_items_are_ignored() -> None:
    reply = ResponsesReply("openai:x")
    assert reply.read_event(an_event("keepalive")) is None
    assert reply.read_event(an_event("response.new.delta", delta={"x": 1})) == ""
    assert reply.read_event(done(0, {"type": "new_call", "content": {"x": 1}})) == ""
    assert [reply.is_done, reply.read_event(ended()), reply.is_done] == [False, "", True]
    assert reply.reply().calls == ()


def test_usage_that_is_not_reported_or_contradicts_itself_is_not_negative() -> None:
    assert read(ended(usage=None)).usage == ModelUsage(estimated=True)
    odd = {
        "input_tokens": 5,
        "input_tokens_details": {"cached_tokens": 9, "cache_write_tokens": 3},
        "output_tokens": -1,
    }
    assert read(ended(usage=odd)).usage == ModelUsage(input_tokens=5, output_tokens=0, cached_tokens=5)


@pytest.mark.requirement("H1", "H2")
def test_finished_items_are_kept_as_they_came_and_in_their_order() -> None:
    provisional = {**REASONING, "encrypted_content": "gAAA-provisional"}
    message = {**a_message("Hello"), "unknown": {"x": [1]}}
    reply = read(
        an_event("response.output_item.added", output_index=0, item=provisional),
        done(1, message),
        done(2, a_call("one", '{"x": 1}')),
        done(0, REASONING),
        ended(),
    )
    assert reply.items is not None
    assert reply.items.origin == "here"
    assert (
        reply.items.data == json.dumps([REASONING, message, a_call("one", '{"x": 1}')], separators=(",", ":")).encode()
    )


@pytest.mark.requirement("H1")
def test_what_text_and_calls_hold_alone_is_not_kept_twice() -> None:
    assert read(done(0, a_message("Hello")), done(1, a_call("one", "{}")), ended()).items is None
    assert read(done(0, {**a_message("Hello"), "phase": "commentary"}), ended()).items is not None


@pytest.mark.requirement("H1")
def test_items_of_a_reply_that_was_cut_or_refused_are_not_kept() -> None:
    cut = ended("incomplete", incomplete_details={"reason": "max_output_tokens"})
    assert read(done(0, REASONING), done(1, a_call("one", "{}")), cut).items is None
    assert read(done(0, REASONING), a_text("No.", 1, kind="refusal"), ended()).items is None


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("ids", [(None, "call_2"), ("", "call_2"), ("call_1", "call_1")])
def test_items_whose_calls_cannot_be_answered_are_not_kept(ids: tuple[str | None, str]) -> None:
    calls = [{**a_call("one", "{}"), "call_id": call_id} for call_id in ids]
    reply = read(done(0, REASONING), *[done(number, call) for number, call in enumerate(calls, 1)], ended())
    assert len(reply.calls) == 2
    assert reply.items is None


@pytest.mark.requirement("H1")
def test_invalid_utf_8_in_an_item_is_replaced_before_it_is_kept() -> None:
    reply = read(done(0, REASONING).replace(b"gAAA-final", b"gAAA\xff"), ended())
    assert reply.items is not None
    assert json.loads(reply.items.data) == [{**REASONING, "encrypted_content": "gAAA\ufffd"}]


@pytest.mark.requirement("H1", "A9")
def test_malformed_arguments_are_inside_an_object_in_the_items() -> None:
    reply = read(done(0, REASONING), done(1, a_call("one", "{x")), ended())
    assert reply.items is not None
    assert reply.calls[0].malformed == "{x"
    reasoning, call = json.loads(reply.items.data)
    assert reasoning == REASONING
    assert call == a_call("one", json.dumps({"malformed_arguments": "{x"}, separators=(",", ":")))


@pytest.mark.requirement("H2")
def test_summaries_of_the_reasoning_are_told_apart_from_the_text() -> None:
    reply = ResponsesReply("openai:x")
    told = []
    for event in (
        an_event("response.reasoning_summary_part.added", output_index=0, summary_index=0),
        an_event("response.reasoning_summary_text.delta", output_index=0, delta="First "),
        an_event("response.reasoning_summary_text.delta", output_index=0, delta="this."),
        an_event("response.reasoning_summary_part.added", output_index=0, summary_index=1),
        an_event("response.reasoning_summary_text.delta", output_index=0, delta="Then that."),
        a_text("Hello", 1),
        ended(),
    ):
        text = reply.read_event(event)
        told.append((reply.taken_reasoning(), text))
    assert "".join(reasoning for reasoning, _ in told) == "First this.\n\nThen that."
    assert [text for _, text in told if text] == ["Hello"]
    assert reply.reply().text == "Hello"


@pytest.mark.requirement("H2")
def test_what_follows_the_end_is_ignored() -> None:
    assert read(a_text("Hello"), ended(), a_text(" and more"), an_event("error", message="late")).text == "Hello"


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    "event",
    [a_text("caf?").replace(b"?", b"\xe9"), an_event("x").replace(b"x", b"\xff")],
    ids=["text", "type"],
)
def test_text_that_is_not_utf_8_is_an_invalid_reply(event: bytes) -> None:
    with pytest.raises(ModelError) as raised:
        read(event, ended())
    assert raised.value.code == "model_invalid_reply"


@pytest.mark.requirement("H6")
def test_a_whole_reply_that_reports_no_tokens_is_to_be_estimated() -> None:
    assert read_whole(usage=None).usage.estimated
    assert read_whole(usage={"input_tokens": 0, "output_tokens": 0}).usage.estimated
