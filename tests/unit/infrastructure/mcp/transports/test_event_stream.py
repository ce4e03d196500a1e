"""Server-sent events however the bytes arrive, and those that are too large."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.mcp.transports.event_stream import EventStream, StreamEvent
from infrastructure.mcp.transports.stdio_framing import OversizedLine

LIMIT = 10_000


def fed(*chunks: bytes, limit: int = LIMIT) -> list[StreamEvent | OversizedLine]:
    stream = EventStream(limit)
    return [event for chunk in chunks for event in stream.feed(chunk)]


def test_fields_comments_and_unknown_lines_are_told_apart() -> None:
    [event] = fed(b": hello\nevent: message\nid: 7\nretry: 250\nnonsense\ndata: {\ndata:}\n\n")
    assert event == StreamEvent(type="message", data=b"{\n}", id="7", retry_ms=250)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_ends_a_line(newline: bytes) -> None:
    text = b"data: one\n\nid: 2\ndata: two\n\n".replace(b"\n", newline)
    assert fed(text) == [StreamEvent(type="message", data=b"one"), StreamEvent(type="message", data=b"two", id="2")]


def test_an_event_with_an_id_and_no_data_says_where_the_stream_is() -> None:
    assert fed(b"id: 1\ndata: \n\n", b": ping\n\n", b"id: 2\n\n") == [
        StreamEvent(type="message", data=b"", id="1"),
        StreamEvent(type="message", data=b"", id="2"),
    ]


@given(cuts=st.lists(st.integers(0, 70), max_size=8), newline=st.sampled_from([b"\n", b"\r\n"]))
def test_where_the_stream_is_cut_makes_no_difference(cuts: list[int], newline: bytes) -> None:
    stream = b"event: endpoint\ndata: /post\n\nid: 1\ndata: caf\xc3\xa9\n\n: x\n\ndata: end\n\n".replace(b"\n", newline)
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[begin:end] for begin, end in itertools.pairwise(edges)]
    assert fed(*pieces) == fed(stream)
    assert len(fed(stream)) == 3


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("step", [7, 1000, 100_000])
def test_an_event_over_the_limit_is_counted_and_the_next_one_is_read(step: int) -> None:
    large = b'event: message\ndata: {"jsonrpc":"2.0","result":{"x":"' + b"x" * 50_000 + b'"},"id":5}\n\n'
    stream = large + b"data: small\n\n"
    oversized, small = fed(*(stream[begin : begin + step] for begin in range(0, len(stream), step)))
    assert isinstance(oversized, OversizedLine)
    assert oversized.size == len(large)
    assert oversized.head.startswith(b'{"jsonrpc"')
    assert oversized.tail.endswith(b'"id":5}')
    assert small == StreamEvent(type="message", data=b"small")
