"""Chunks on the chat-completions wire become one reply."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.models.ports import ModelError, ModelReply, RequestedCall
from domain.runs.usage import ModelUsage
from infrastructure.llm.openai_reply import OpenAIReply


def a_chunk(finish: str | None = None, **delta: object) -> bytes:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def a_call_chunk(index: int | None, arguments: str, *, id: str | None = None, name: str | None = None) -> bytes:
    call: dict[str, object] = {"function": {"arguments": arguments} | ({"name": name} if name else {})}
    if index is not None:
        call["index"] = index
    if id:
        call["id"] = id
    return a_chunk(tool_calls=[call])


USAGE = (
    b'{"choices":[],"usage":{"prompt_tokens":90,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":64}}}'
)


def read(*chunks: bytes, origin: str = "") -> ModelReply:
    reply = OpenAIReply("openai:x", origin=origin)
    for chunk in chunks:
        reply.read_event(chunk)
    return reply.reply()


def items_of(reply: ModelReply) -> dict[str, Any]:
    assert reply.items is not None
    assert reply.items.origin == "here"
    (message,) = json.loads(reply.items.data)
    return dict(message)


@pytest.mark.requirement("A10")
def test_text_usage_and_the_reason_are_put_together() -> None:
    reply = read(
        a_chunk(role="assistant", content=""),
        a_chunk(content="Hel"),
        a_chunk(content="lo"),
        a_chunk(finish="stop"),
        USAGE,
        b"[DONE]",
    )
    assert reply.text == "Hello"
    assert reply.usage == ModelUsage(input_tokens=90, output_tokens=7, cached_tokens=64)
    assert reply.finish_reason == "stop"


def test_parallel_calls_are_kept_apart_by_their_index() -> None:
    reply = read(
        a_call_chunk(0, "", id="a", name="one"),
        a_call_chunk(1, "", id="b", name="two"),
        a_call_chunk(0, '{"x":'),
        a_call_chunk(1, '{"y"'),
        a_call_chunk(0, "1}"),
        a_call_chunk(1, ":2}"),
        a_chunk(finish="tool_calls"),
    )
    assert reply.calls == (
        RequestedCall(name="one", arguments={"x": 1}),
        RequestedCall(name="two", arguments={"y": 2}),
    )


@pytest.mark.parametrize("index", [0, None])
def test_calls_of_servers_that_do_not_count_are_kept_apart_by_their_id(index: int | None) -> None:
    reply = read(
        a_call_chunk(index, '{"x":1}', id="a", name="one"),
        a_call_chunk(index, '{"y":2}', id="b", name="two"),
        a_chunk(finish="tool_calls"),
    )
    assert [call.name for call in reply.calls] == ["one", "two"]


@pytest.mark.requirement("A9")
@pytest.mark.parametrize("arguments", ['{"x":', "[1]", "null", '"text"', "{'x': 1}"])
def test_arguments_that_are_not_an_object_are_kept_as_text(arguments: str) -> None:
    (call,) = read(a_call_chunk(0, arguments, id="a", name="one"), a_chunk(finish="tool_calls")).calls
    assert call == RequestedCall(name="one", arguments={}, malformed=arguments)


def test_no_argument_text_means_no_arguments() -> None:
    (call,) = read(a_call_chunk(0, "", id="a", name="one"), a_chunk(finish="tool_calls")).calls
    assert call == RequestedCall(name="one", arguments={})


@pytest.mark.parametrize(
    "chunks",
    [
        (a_chunk(content="half"),),
        (a_chunk(content="half"), b"[DONE]"),
        (b"not json",),
        (b'{"choices": 3}',),
        (a_call_chunk(0, "{}", id="a"), a_chunk(finish="tool_calls")),
        (),
    ],
    ids=["cut off", "no reason", "not JSON", "another shape", "call without a name", "nothing"],
)
def test_a_broken_reply_is_an_error_worth_retrying(chunks: tuple[bytes, ...]) -> None:
    with pytest.raises(ModelError) as raised:
        read(*chunks)
    assert (raised.value.code, raised.value.retryable) == ("model_invalid_reply", True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        ({"type": "server_error", "message": "boom"}, "model_unavailable"),
        ({"code": "rate_limit_exceeded"}, "model_rate_limited"),
        ({"code": 429}, "model_rate_limited"),
        ({"code": "context_length_exceeded", "type": "invalid_request_error"}, "model_context_exceeded"),
        ("boom", "model_unavailable"),
    ],
)
def test_an_error_told_in_the_stream_has_its_own_code(error: object, code: str) -> None:
    with pytest.raises(ModelError) as raised:
        read(a_chunk(content="half"), json.dumps({"error": error}).encode())
    assert raised.value.code == code


def test_a_whole_completion_reads_like_its_stream() -> None:
    whole = OpenAIReply("openai:x")
    text = whole.read_whole(
        json.dumps(
            {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {
                            "role": "assistant",
                            "content": "Hello",
                            "tool_calls": [
                                {"id": "a", "type": "function", "function": {"name": "one", "arguments": '{"x":1}'}},
                                {"id": "b", "type": "function", "function": {"name": "two", "arguments": "{}"}},
                            ],
                        },
                    }
                ],
                "usage": {"prompt_tokens": 3, "completion_tokens": 2},
            }
        ).encode()
    )
    reply = whole.reply()
    assert text == reply.text == "Hello"
    assert [call.arguments for call in reply.calls] == [{"x": 1}, {}]
    assert reply.usage == ModelUsage(input_tokens=3, output_tokens=2)


def test_content_in_parts_and_refusals_are_text() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Yes"}]
    reply = read(a_chunk(content=parts), a_chunk(refusal=", but no"), a_chunk(finish="stop"))
    assert reply.text == "Yes, but no"


@given(
    texts=st.lists(st.text(max_size=8), max_size=8),
    arguments=st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=6), max_size=3),
    cuts=st.lists(st.integers(0, 60), max_size=6),
)
def test_however_arguments_are_cut_the_call_is_the_same(
    texts: list[str], arguments: dict[str, int | str], cuts: list[int]
) -> None:
    raw = json.dumps(arguments)
    edges = [0, *sorted(min(cut, len(raw)) for cut in cuts), len(raw)]
    pieces = [raw[start:end] for start, end in pairwise(edges)]
    reply = read(
        *(a_chunk(content=text) for text in texts),
        a_call_chunk(0, "", id="a", name="one"),
        *(a_call_chunk(0, piece) for piece in pieces),
        a_chunk(finish="tool_calls"),
    )
    assert reply.text == "".join(texts)
    assert reply.calls == (RequestedCall(name="one", arguments=dict(arguments)),)


@pytest.mark.requirement("H1", "H2")
def test_reasoning_is_shown_and_goes_into_the_items() -> None:
    reader = OpenAIReply("deepseek:x", origin="here")
    shown = []
    for chunk in (
        a_chunk(role="assistant", content=None, reasoning_content=""),
        a_chunk(reasoning_content="The user "),
        a_chunk(reasoning_content="asks."),
        a_chunk(content="Let me look.", reasoning_content=None),
        a_call_chunk(0, "", id="call_1", name="one"),
        a_call_chunk(0, '{"x": 1}'),
        a_chunk(finish="tool_calls"),
    ):
        reader.read_event(chunk)
        shown.append(reader.taken_reasoning())
    assert [text for text in shown if text] == ["The user ", "asks."]
    reply = reader.reply()
    assert reply.text == "Let me look."
    assert items_of(reply) == {
        "role": "assistant",
        "content": "Let me look.",
        "reasoning_content": "The user asks.",
        "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "one", "arguments": '{"x": 1}'}}],
    }


@pytest.mark.requirement("H1")
def test_unknown_fields_of_calls_go_into_the_items() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": "{}"}}
    reply = read(
        a_chunk(tool_calls=[{**call, "extra_content": signature}]),
        a_chunk(tool_calls=[{**call, "index": 1, "id": "b"}]),
        a_chunk(finish="tool_calls"),
        origin="here",
    )
    first, second = items_of(reply)["tool_calls"]
    assert (first["extra_content"], "extra_content" in second) == (signature, False)


@pytest.mark.requirement("H1")
def test_reasoning_details_go_back_in_their_order_and_are_shown_once() -> None:
    reader = OpenAIReply("openrouter:x", origin="here")
    pieces = [
        {"type": "reasoning.text", "text": "I ", "format": "f", "index": 0},
        {"type": "reasoning.text", "text": "look.", "format": "f", "index": 0},
        {"type": "reasoning.text", "signature": "s", "format": "f", "index": 0},
        {"type": "reasoning.encrypted", "data": "d", "id": "a", "index": 1},
    ]
    for piece in pieces:
        reader.read_event(a_chunk(reasoning=piece.get("text"), reasoning_details=[piece]))
    reader.read_event(a_chunk(finish="stop", content="Yes"))
    assert reader.taken_reasoning() == "I look."
    assert items_of(reader.reply())["reasoning_details"] == [
        {"type": "reasoning.text", "text": "I look.", "format": "f", "index": 0, "signature": "s"},
        pieces[-1],
    ]


@pytest.mark.requirement("H1")
def test_a_whole_message_has_the_same_items() -> None:
    details = [{"type": "reasoning.text", "text": "a", "index": 0}, {"type": "reasoning.text", "text": "b", "index": 0}]
    message = {"role": "assistant", "content": "Yes", "reasoning_details": details}
    reader = OpenAIReply("openrouter:x", origin="here")
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    assert reader.read_whole(json.dumps({"choices": [choice]}).encode()) == "Yes"
    assert items_of(reader.reply()) == message


@pytest.mark.requirement("H1")
def test_a_malformed_call_is_wrapped_in_the_items_and_the_others_stay() -> None:
    reply = read(
        a_chunk(reasoning_content="Hm."),
        a_call_chunk(0, '{ "x": 1 }', id="a", name="one"),
        a_call_chunk(1, '{"y":', id="b", name="two"),
        a_chunk(finish="length"),
        origin="here",
    )
    arguments = [call["function"]["arguments"] for call in items_of(reply)["tool_calls"]]
    assert arguments[0] == '{ "x": 1 }'
    assert json.loads(str(arguments[1])) == {"malformed_arguments": '{"y":'}


@pytest.mark.parametrize(
    "chunks",
    [
        (a_chunk(content="Yes", reasoning_content=None, reasoning=""), a_chunk(finish="stop")),
        (a_chunk(content="No", reasoning_content="Hm."), a_chunk(finish="content_filter")),
        (a_chunk(reasoning_content="Hm."), a_chunk(finish="stop")),
    ],
    ids=["nothing more", "withdrawn", "neither text nor call"],
)
def test_a_reply_has_no_items_if_there_is_nothing_to_send_back(chunks: tuple[bytes, ...]) -> None:
    assert read(*chunks, origin="here").items is None


@pytest.mark.requirement("H1")
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
@pytest.mark.parametrize("depth", [300, 500, 700, 900])
def test_fields_that_are_too_deep_to_go_back_cost_the_items_and_not_the_reply(depth: int, whole: bool) -> None:
    deep = b'{"reasoning_content":"Hm.","own":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
    own = b'{"choices":[{"index":0,"delta":%b}]}' % deep
    if whole:
        own = own.replace(b'"delta"', b'"message"')
    reply = read(own, a_chunk(content="Yes"), a_chunk(finish="stop"), origin="here")
    assert reply.text == "Yes"


@pytest.mark.requirement("H1")
def test_a_list_with_too_many_entries_costs_the_items_and_not_the_reply() -> None:
    details = [{"type": "reasoning.text", "text": "a"}] * 10_001
    reply = read(a_chunk(content="Yes", reasoning_details=details), a_chunk(finish="stop"), origin="here")
    assert (reply.text, reply.items) == ("Yes", None)


def test_without_an_origin_there_are_no_items() -> None:
    assert read(a_chunk(content="Yes", reasoning_content="Hm."), a_chunk(finish="stop")).items is None


def test_ids_that_do_not_tell_calls_apart_are_left_out_of_the_items() -> None:
    reply = read(
        a_chunk(reasoning_content="Hm."),
        a_call_chunk(0, "{}", id="same", name="one"),
        a_call_chunk(1, "{}", id="same", name="two"),
        a_chunk(finish="tool_calls"),
        origin="here",
    )
    assert "id" not in json.dumps(items_of(reply))


@pytest.mark.parametrize("arguments", [{"x": {"y": 1}}, [1], 3])
def test_arguments_that_are_no_text_are_read_as_what_they_are(arguments: object) -> None:
    call = {"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": arguments}}
    (said,) = read(a_chunk(tool_calls=[call]), a_chunk(finish="tool_calls")).calls
    if isinstance(arguments, dict):
        assert said.arguments == arguments
    else:
        assert said.malformed == json.dumps(arguments, separators=(",", ":"))


@pytest.mark.parametrize("text", [rb"Hel\ud83d", b"Hel\xff"], ids=["lone surrogate", "invalid UTF-8"])
def test_a_piece_that_is_no_text_is_read_with_a_replacement_character(text: bytes) -> None:
    reply = read(
        b'{"choices":[{"delta":{"content":"%b"}}]}' % text, a_chunk(content="lo"), a_chunk(finish="stop"), USAGE
    )
    assert reply.text == "Hel\ufffdlo"


def test_a_lone_surrogate_in_arguments_does_not_make_them_malformed() -> None:
    (call,) = read(a_call_chunk(0, r'{"x":"\ud83d"}', id="a", name="one"), a_chunk(finish="tool_calls")).calls
    assert call == RequestedCall(name="one", arguments={"x": "\ufffd"})


def test_text_after_the_end_is_not_part_of_the_reply() -> None:
    reply = read(a_chunk(content="Hello"), a_chunk(finish="stop"), b"[DONE]", a_chunk(content=" there"))
    assert reply.text == "Hello"


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 7,
                "completion_tokens_details": {"reasoning_tokens": 5},
                "prompt_cache_hit_tokens": 4,
            },
            ModelUsage(input_tokens=9, output_tokens=7, reasoning_tokens=5, cached_tokens=4),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 16, "cached_tokens": 3},
            ModelUsage(input_tokens=9, output_tokens=7, reasoning_tokens=5, cached_tokens=3),
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 2,
                "total_tokens": 11,
                "prompt_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 8},
            },
            ModelUsage(input_tokens=9, output_tokens=2, cached_tokens=3, cache_write_tokens=6),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, ModelUsage(estimated=True)),
    ],
    ids=["DeepSeek", "reasoning in the total only", "cache writes", "zeros"],
)
def test_usage_is_read_as_its_provider_counts(usage: object, counted: ModelUsage) -> None:
    chunk = json.dumps({"choices": [], "usage": usage}).encode()
    assert read(a_chunk(content="Hi"), a_chunk(finish="stop"), chunk).usage == counted


def test_without_usage_it_is_to_be_estimated() -> None:
    assert read(a_chunk(content="Hi"), a_chunk(finish="stop")).usage == ModelUsage(estimated=True)
