"""Events on the messages wire become one reply."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.models.ports import ModelError, ModelReply, RequestedCall
from domain.runs.usage import ModelUsage
from infrastructure.llm.anthropic_reply import AnthropicReply


def an_event(type: str, **fields: object) -> bytes:
    return json.dumps({"type": type, **fields}).encode()


START = an_event(
    "message_start",
    message={
        "type": "message",
        "content": [],
        "usage": {
            "input_tokens": 10,
            "cache_read_input_tokens": 80,
            "cache_creation_input_tokens": 5,
            "output_tokens": 1,
        },
    },
)
STOP = an_event("message_stop")


def text_start(index: int) -> bytes:
    return an_event("content_block_start", index=index, content_block={"type": "text", "text": ""})


def text(index: int, piece: str) -> bytes:
    return an_event("content_block_delta", index=index, delta={"type": "text_delta", "text": piece})


def call_start(index: int, name: str) -> bytes:
    block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    return an_event("content_block_start", index=index, content_block=block)


def arguments(index: int, piece: str) -> bytes:
    return an_event("content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": piece})


def ended(reason: str) -> bytes:
    return an_event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 42})


def read(*events: bytes) -> ModelReply:
    reply = AnthropicReply("anthropic:x")
    for event in events:
        reply.read_event(event)
    return reply.reply()


@pytest.mark.requirement("A10")
def test_input_tokens_include_what_the_cache_gave_and_took() -> None:
    reply = read(START, text_start(0), text(0, "Hi"), ended("end_turn"), STOP)
    assert reply.usage == ModelUsage(input_tokens=95, output_tokens=42, cached_tokens=80, cache_write_tokens=5)
    assert (reply.text, reply.finish_reason) == ("Hi", "stop")


def test_interleaved_blocks_are_kept_apart_by_their_index() -> None:
    reply = read(
        START,
        text_start(0),
        call_start(1, "one"),
        call_start(2, "two"),
        text(0, "Look: "),
        arguments(2, '{"y"'),
        arguments(1, '{"x":1}'),
        arguments(2, ":2}"),
        text(0, "now"),
        ended("tool_use"),
        STOP,
    )
    assert reply.text == "Look: now"
    assert reply.calls == (
        RequestedCall(name="one", arguments={"x": 1}),
        RequestedCall(name="two", arguments={"y": 2}),
    )
    assert reply.finish_reason == "tool_calls"


def test_a_call_without_deltas_has_no_arguments_and_one_cut_short_is_malformed() -> None:
    reply = read(START, call_start(0, "one"), call_start(1, "two"), arguments(1, '{"x"'), ended("max_tokens"), STOP)
    assert reply.calls == (
        RequestedCall(name="one", arguments={}),
        RequestedCall(name="two", arguments={}, malformed='{"x"'),
    )
    assert reply.finish_reason == "length"


def test_what_is_unknown_is_passed_over_and_a_ping_is_no_progress() -> None:
    reply = AnthropicReply("anthropic:x")
    assert reply.read_event(an_event("ping")) is None
    assert reply.read_event(an_event("novelty", shape=[1, 2])) == ""
    thinking = an_event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"})
    assert reply.read_event(thinking) == ""


@pytest.mark.parametrize(
    "events",
    [
        (START, text_start(0), text(0, "half")),
        (START, ended("end_turn")),
        (START, STOP),
        (b'{"type": "message_start", "mess',),
        (b"[]",),
        (START, call_start(0, ""), ended("tool_use"), STOP),
    ],
    ids=["cut off", "no end", "no reason", "not JSON", "another shape", "call without a name"],
)
def test_a_broken_reply_is_an_error_worth_retrying(events: tuple[bytes, ...]) -> None:
    with pytest.raises(ModelError) as raised:
        read(*events)
    assert (raised.value.code, raised.value.retryable) == ("model_invalid_reply", True)


@pytest.mark.parametrize(
    ("type", "code"),
    [
        ("overloaded_error", "model_unavailable"),
        ("rate_limit_error", "model_rate_limited"),
        ("invalid_request_error", "model_rejected"),
        ("authentication_error", "model_auth"),
        ("something_new", "model_unavailable"),
    ],
)
def test_an_error_told_in_the_stream_has_its_own_code(type: str, code: str) -> None:
    with pytest.raises(ModelError) as raised:
        read(START, an_event("error", error={"type": type, "message": "secret words"}))
    assert raised.value.code == code
    assert "secret" not in raised.value.detail


def test_a_whole_message_reads_like_its_stream() -> None:
    whole = AnthropicReply("anthropic:x")
    said = whole.read_whole(
        json.dumps(
            {
                "type": "message",
                "content": [
                    {"type": "text", "text": "Look"},
                    {"type": "tool_use", "id": "toolu_1", "name": "one", "input": {"x": {"y": [1]}}},
                    {"type": "tool_use", "id": "toolu_2", "name": "two", "input": {}},
                ],
                "stop_reason": "tool_use",
                "usage": {"input_tokens": 3, "output_tokens": 2},
            }
        ).encode()
    )
    reply = whole.reply()
    assert said == reply.text == "Look"
    assert [call.arguments for call in reply.calls] == [{"x": {"y": [1]}}, {}]
    assert reply.usage == ModelUsage(input_tokens=3, output_tokens=2)


@given(pieces=st.lists(st.text(max_size=10), max_size=10), cuts=st.lists(st.integers(0, 30), max_size=5))
def test_however_a_reply_is_cut_it_is_the_same(pieces: list[str], cuts: list[int]) -> None:
    raw = '{"text": "some argument", "n": 5}'
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    reply = read(
        START,
        text_start(0),
        *(text(0, piece) for piece in pieces),
        call_start(1, "one"),
        *(arguments(1, raw[start:end]) for start, end in pairwise(edges)),
        ended("tool_use"),
        STOP,
    )
    assert reply.text == "".join(pieces)
    assert reply.calls == (RequestedCall(name="one", arguments={"text": "some argument", "n": 5}),)
