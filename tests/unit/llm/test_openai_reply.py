"""Chunks on the chat-completions wire become one reply."""

import json
from itertools import pairwise

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


def read(*chunks: bytes) -> ModelReply:
    reply = OpenAIReply("openai:x")
    for chunk in chunks:
        reply.read_event(chunk)
    return reply.reply()


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
