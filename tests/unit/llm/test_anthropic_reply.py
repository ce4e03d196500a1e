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


def own_start(index: int, **block: object) -> bytes:
    return an_event("content_block_start", index=index, content_block=block)


def delta(index: int, kind: str, **fields: str) -> bytes:
    return an_event("content_block_delta", index=index, delta={"type": kind, **fields})


def read(*events: bytes) -> ModelReply:
    reply = AnthropicReply("anthropic:x", origin="here")
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


THOUGHT = (
    own_start(0, type="thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="I look "),
    delta(0, "thinking_delta", thinking="at it."),
    delta(0, "signature_delta", signature="c2ln"),
)


@pytest.mark.requirement("H1", "H2")
def test_thinking_is_shown_and_all_blocks_go_into_the_items_in_their_order() -> None:
    reader = AnthropicReply("anthropic:x", origin="here")
    for event in (
        START,
        *THOUGHT,
        own_start(1, type="redacted_thinking", data="c2VjcmV0"),
        text_start(2),
        text(2, "Let me "),
        text(2, "look."),
        call_start(3, "one"),
        arguments(3, '{"x": 1}'),
        call_start(4, "two"),
        ended("tool_use"),
        STOP,
    ):
        reader.read_event(event)
    assert reader.taken_reasoning() == "I look at it."
    reply = reader.reply()
    assert reply.text == "Let me look."
    assert reply.items is not None
    assert reply.items.origin == "here"
    assert json.loads(reply.items.data) == [
        {"type": "thinking", "thinking": "I look at it.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VjcmV0"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": "toolu_3", "name": "one", "input": {"x": 1}},
        {"type": "tool_use", "id": "toolu_4", "name": "two", "input": {}},
    ]


@pytest.mark.requirement("H1")
def test_calls_of_the_providers_own_tools_are_in_the_items_between_the_texts() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"title": "T"}]}
    reply = read(
        START,
        text_start(0),
        text(0, "One. "),
        own_start(1, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
        arguments(1, '{"query":'),
        arguments(1, '"x"}'),
        own_start(2, **result),
        text_start(3),
        text(3, " "),
        text_start(4),
        text(4, "Two."),
        ended("pause_turn"),
        STOP,
    )
    assert (reply.text, reply.calls, reply.finish_reason) == ("One.  Two.", (), "paused")
    assert reply.items is not None
    assert json.loads(reply.items.data) == [
        {"type": "text", "text": "One. "},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        result,
        {"type": "text", "text": "Two."},
    ]


@pytest.mark.requirement("H1")
def test_a_whole_message_has_the_same_items() -> None:
    blocks = [
        {"type": "thinking", "thinking": "I look.", "signature": "c2ln"},
        {"type": "text", "text": "Look"},
        {"type": "tool_use", "id": "toolu_1", "name": "one", "input": {"x": 1}},
    ]
    reader = AnthropicReply("anthropic:x", origin="here")
    message = {"type": "message", "content": blocks, "stop_reason": "tool_use", "usage": {"input_tokens": 1}}
    reader.read_whole(json.dumps(message).encode())
    assert reader.taken_reasoning() == "I look."
    items = reader.reply().items
    assert items is not None
    assert json.loads(items.data) == blocks


@pytest.mark.requirement("H1")
def test_a_malformed_call_is_wrapped_in_the_items() -> None:
    events = (*THOUGHT, call_start(1, "one"), arguments(1, '{"x"'), ended("max_tokens"), STOP)
    items = read(START, *events).items
    assert items is not None
    assert json.loads(items.data)[1]["input"] == {"malformed_arguments": '{"x"'}


@pytest.mark.requirement("H1")
def test_thinking_that_begins_with_null_has_what_the_pieces_bring() -> None:
    start = own_start(0, type="thinking", thinking=None, signature=None)
    items = read(START, start, *THOUGHT[1:], text_start(1), text(1, "Hi"), ended("end_turn"), STOP).items
    assert items is not None
    assert json.loads(items.data)[0] == {"type": "thinking", "thinking": "I look at it.", "signature": "c2ln"}


@pytest.mark.parametrize(
    "events",
    [
        (text_start(0), text(0, "Hi"), ended("end_turn")),
        (*THOUGHT[:3], ended("max_tokens")),
        (*THOUGHT, text_start(1), text(1, "No."), ended("refusal")),
        (
            own_start(0, type="server_tool_use", id="srvtoolu_1", name="web_search", input={}),
            arguments(0, '{"query":'),
            ended("max_tokens"),
        ),
        (*THOUGHT, own_start(1, type="tool_use", name="one", input={}), ended("tool_use")),
        (*THOUGHT, call_start(1, "one"), own_start(2, type="tool_use", id="toolu_1", name="two"), ended("tool_use")),
        (
            own_start(0, type="thinking", thinking="", signature=5),
            delta(0, "signature_delta", signature="s"),
            ended("max_tokens"),
        ),
    ],
    ids=[
        "nothing more",
        "cut in its thinking",
        "withdrawn",
        "cut in a call of the provider's own tool",
        "call without an id",
        "two calls with one id",
        "signature of another type",
    ],
)
def test_a_reply_has_no_items_if_there_is_nothing_to_send_back(events: tuple[bytes, ...]) -> None:
    assert read(START, *events, STOP).items is None


@pytest.mark.requirement("H2")
@pytest.mark.parametrize(
    ("stop_reason", "finish_reason", "incomplete_reason"),
    [
        ("max_tokens", "length", "max_output_tokens"),
        ("refusal", "refusal", "refusal"),
        ("model_context_window_exceeded", "context_exceeded", "context_exceeded"),
        ("pause_turn", "paused", None),
    ],
)
def test_a_reply_that_is_not_whole_says_why(
    stop_reason: str, finish_reason: str, incomplete_reason: str | None
) -> None:
    reply = read(START, text_start(0), text(0, "Half"), ended(stop_reason), STOP)
    assert (reply.finish_reason, reply.finish_reason.incomplete_reason) == (finish_reason, incomplete_reason)


def test_text_after_the_end_is_not_part_of_the_reply() -> None:
    assert read(START, text_start(0), text(0, "Hi"), ended("end_turn"), STOP, text(0, " there")).text == "Hi"


@pytest.mark.parametrize("piece", [rb"Hel\ud83d", b"Hel\xff"], ids=["lone surrogate", "invalid UTF-8"])
def test_a_piece_that_is_no_text_is_read_with_a_replacement_character(piece: bytes) -> None:
    event = b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%b"}}' % piece
    assert read(START, text_start(0), event, ended("end_turn"), STOP).text == "Hel\ufffd"


def test_a_block_that_is_none_is_an_invalid_reply() -> None:
    with pytest.raises(ModelError) as raised:
        read(START, an_event("content_block_start", index=0, content_block=[1]))
    assert raised.value.code == "model_invalid_reply"


def test_without_usage_it_is_to_be_estimated() -> None:
    message = an_event("message_start", message={"type": "message", "content": []})
    end = an_event("message_delta", delta={"stop_reason": "end_turn"})
    assert read(message, text_start(0), text(0, "Hi"), end, STOP).usage == ModelUsage(estimated=True)
