"""Server-sent events: the same however the bytes are cut, and of bounded size."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from application.system.event_stream import EventStream, OversizedEvent, OversizedEventError, StreamEvent

LIMIT = 10_000
STREAM = (
    ": a comment\n\n"
    "event: one\ndata: first\n\n"
    "data:second\r\n\r\n"
    "id: 7\r\nevent: run.completed\r\ndata: third\r\ndata: goes on\r\n\r\n"
    "retry: 10\n\n"
    'data: {"text": "a\u2028b"}\n\n'
    "event: end\rdata: ünïcode 🎈\r\r"
    "id: 9\nevent: never.finished\ndata: x\n"
).encode()
EVENTS = [
    StreamEvent(b"first", "one"),
    StreamEvent(b"second"),
    StreamEvent(b"third\ngoes on", "run.completed", id="7"),
    StreamEvent('{"text": "a\u2028b"}'.encode()),
    StreamEvent("ünïcode 🎈".encode(), "end"),
]


def fed(*chunks: bytes, limit: int = LIMIT) -> list[StreamEvent | OversizedEvent]:
    stream = EventStream(limit)
    return [event for chunk in chunks for event in stream.feed(chunk)]


def test_fields_comments_and_unknown_lines_are_told_apart() -> None:
    [event] = fed(b": hello\nevent: message\nid: 7\nretry: 250\nnonsense\ndata: {\ndata:}\n\n")
    assert event == StreamEvent(b"{\n}", id="7", retry_ms=250)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_ends_a_line(newline: bytes) -> None:
    text = b"data: one\n\nid: 2\ndata: two\n\n".replace(b"\n", newline)
    assert fed(text) == [StreamEvent(b"one"), StreamEvent(b"two", id="2")]


def test_an_event_with_an_id_and_no_data_says_where_the_stream_is() -> None:
    events = fed(b"id: 1\ndata: \n\n", b": ping\n\n", b"id: 2\n\n")
    assert events == [StreamEvent(b"", id="1"), StreamEvent(b"", id="2")]


def test_an_event_with_neither_data_nor_id_is_skipped_and_counted() -> None:
    stream = EventStream(LIMIT)
    assert stream.feed(b"event: ping\n\n: comment\n\ndata: x\n\n") == [StreamEvent(b"x")]
    assert (stream.take_skipped(), stream.take_skipped()) == (2, 0)


def test_a_line_of_the_field_alone_has_an_empty_value() -> None:
    assert fed(b"data\ndata: x\nid\nevent\n\n") == [StreamEvent(b"\nx")]


def test_an_id_with_a_null_character_is_ignored() -> None:
    assert fed(b"id: 1\nid: 2\0\ndata: x\n\n") == [StreamEvent(b"x", id="1")]


@pytest.mark.parametrize("retry", [b"soon", b"-1", b"", b"9" * 5000], ids=["text", "negative", "empty", "huge"])
def test_a_retry_that_is_no_delay_is_ignored(retry: bytes) -> None:
    assert fed(b"retry: " + retry + b"\ndata: x\n\n") == [StreamEvent(b"x")]


def test_a_byte_order_mark_at_the_beginning_is_ignored() -> None:
    mark = "\ufeff".encode()
    assert fed(mark + b"data: x\n\n", mark + b"data: y\n\n") == [StreamEvent(b"x")]


@given(st.sets(st.integers(min_value=1, max_value=len(STREAM) - 1)))
def test_any_split_of_a_stream_gives_the_same_events(cuts: set[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert fed(*(STREAM[begin:end] for begin, end in itertools.pairwise(edges))) == EVENTS


LINES = [b"", b"data: x", b"data:y", b"data", b"event: one", b"event", b"id: 3", b": a comment", b"retry: 10"]


@given(st.lists(st.sampled_from(LINES), max_size=12), st.integers(min_value=1, max_value=9))
def test_lines_that_end_with_lf_alone_are_read_as_all_others(lines: list[bytes], piece: int) -> None:
    text = b"".join(line + b"\n" for line in lines)
    pieces = [text[begin : begin + piece] for begin in range(0, len(text), piece)]
    assert fed(*pieces) == fed(text) == fed(text.replace(b"\n", b"\r\n"))


@given(st.lists(st.sampled_from([b"data: a", b"data:b", b"data", b"id: 1", b": c", b"", b"\n", b"\n\n"]), max_size=12))
def test_lines_in_one_piece_give_the_events_that_they_give_byte_by_byte(lines: list[bytes]) -> None:
    stream = b"\n".join(lines)
    assert fed(stream) == fed(*(stream[at : at + 1] for at in range(len(stream))))


def pairs(*chunks: bytes, limit: int = LIMIT) -> list[tuple[bytes, bytes]]:
    stream = EventStream(limit)
    return [(type_ or b"message", data) for chunk in chunks for type_, data in stream.feed_pairs(chunk)]


PLAIN = [b"event: one\ndata: x\n\n", b"data: y\n\n", b"data: \n\n", b"event: \ndata: z\n\n"]
ODD = [
    b": c\n\n",
    b"\n",
    b"\n\n",
    b"id: 1\ndata: x\n\n",
    b"data: a\ndata: b\n\n",
    b"data:x\n\n",
    b"data: x\r\n\r\n",
    b"event: e\n\n",
]


@given(
    st.lists(st.sampled_from([*PLAIN, *ODD, "\ufeff".encode()]), max_size=8),
    st.sets(st.integers(min_value=1, max_value=60)),
)
def test_pairs_are_the_types_and_the_data_of_the_same_events(blocks: list[bytes], cuts: set[int]) -> None:
    text = b"".join(blocks)
    edges = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(edges)]
    expected = [(event.type.encode(), event.data) for event in fed(text) if isinstance(event, StreamEvent)]
    assert pairs(*pieces) == expected


def test_pairs_of_an_event_over_the_limit_are_an_error() -> None:
    with pytest.raises(OversizedEventError):
        pairs(b"data: " + b"x" * 50 + b"\n\ndata: small\n\n", limit=30)


def test_an_event_without_its_end_is_not_handed_out() -> None:
    stream = EventStream(LIMIT)
    assert stream.feed(b"data: whole\n\ndata: half\n") == [StreamEvent(b"whole")]
    assert stream.feed(b"\n") == [StreamEvent(b"half")]


@pytest.mark.requirement("B11")
@pytest.mark.parametrize("step", [7, 1000, 100_000])
def test_an_event_over_the_limit_is_counted_and_the_next_one_is_read(step: int) -> None:
    large = b'event: message\ndata: {"jsonrpc":"2.0","result":{"x":"' + b"x" * 50_000 + b'"},"id":5}\n\n'
    stream = large + b"data: small\n\n"
    oversized, small = fed(*(stream[begin : begin + step] for begin in range(0, len(stream), step)))
    assert isinstance(oversized, OversizedEvent)
    assert oversized.size == len(large)
    assert oversized.head.startswith(b'{"jsonrpc"')
    assert oversized.tail.endswith(b'"id":5}')
    assert small == StreamEvent(b"small")


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 900 + b"\n", b"x" * 900], ids=["lines", "one line"])
def test_an_event_that_never_ends_is_counted_and_not_held(piece: bytes) -> None:
    stream = EventStream(LIMIT)
    discarded = 0
    for _ in range(1000):
        assert stream.feed(piece) == []
        discarded += stream.take_discarded()
    assert stream.unfinished_bytes == 1000 * len(piece)
    assert len(stream._buffer) <= LIMIT
    assert 0 < stream.unfinished_bytes - discarded <= LIMIT


@pytest.mark.requirement("S3")
@pytest.mark.parametrize("step", [300, 1001, 100_000])
@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_the_beginning_of_an_event_says_how_large_it_may_be(step: int, newline: bytes) -> None:
    long, short = b"data: long" + b"x" * 3 * LIMIT, b"data: short" + b"x" * 3 * LIMIT
    text = b"".join(event + 2 * newline for event in (long, b"data: 1", short, b"data: 2", long))
    stream = EventStream(LIMIT, limit_of=lambda head: 4 * LIMIT if head.startswith(b"long") else 0)
    held = 0
    events: list[StreamEvent | OversizedEvent] = []
    for begin in range(0, len(text), step):
        events += stream.feed(text[begin : begin + step])
        held = max(held, len(stream._buffer))
    first, one, refused, two, last = events
    assert isinstance(refused, OversizedEvent)
    assert (first, last) == (StreamEvent(long[6:]), StreamEvent(long[6:]))
    assert (one, two) == (StreamEvent(b"1"), StreamEvent(b"2"))
    assert len(short) < refused.size <= len(short) + 2 * len(newline)
    assert held <= 4 * LIMIT
