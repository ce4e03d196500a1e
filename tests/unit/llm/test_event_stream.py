"""The bytes of an event stream become the same events however the network cuts them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.llm.sse import MAX_EVENT_BYTES, EventStreamParser, EventTooLargeError

STREAM = (
    ": a comment\n\n"
    "event: one\ndata: first\n\n"
    "data:second\r\n\r\n"
    "id: 7\ndata: third\ndata: goes on\n\n"
    "retry: 10\n\n"
    "data: ünïcode 🎈\n\n"
).encode()
EVENTS = [b"first", b"second", b"third\ngoes on", "ünïcode 🎈".encode()]


@given(st.sets(st.integers(min_value=1, max_value=len(STREAM) - 1)))
def test_any_split_of_a_stream_gives_the_same_events(cuts: set[int]) -> None:
    parser = EventStreamParser()
    edges = [0, *sorted(cuts), len(STREAM)]
    events = [event for start, end in pairwise(edges) for event in parser.feed(STREAM[start:end])]
    assert events == EVENTS


@given(st.lists(st.sampled_from([b"data: a", b"data:b", b"data", b"id: 1", b": c", b"", b"\n", b"\n\n"]), max_size=12))
def test_lines_in_one_piece_give_the_events_that_they_give_byte_by_byte(lines: list[bytes]) -> None:
    stream = b"\n".join(lines)
    parser = EventStreamParser()
    assert EventStreamParser().feed(stream) == [
        event for at in range(len(stream)) for event in parser.feed(stream[at : at + 1])
    ]


def test_an_event_in_one_piece_that_is_too_large_is_refused() -> None:
    with pytest.raises(EventTooLargeError):
        EventStreamParser().feed(b"data: " + b"x" * (MAX_EVENT_BYTES + 1) + b"\n\n")


def test_an_event_without_its_end_is_not_handed_out() -> None:
    parser = EventStreamParser()
    assert parser.feed(b"data: whole\n\ndata: half\n") == [b"whole"]
    assert parser.feed(b"\n") == [b"half"]


@pytest.mark.parametrize("piece", [b"data: " + b"x" * 9000 + b"\n", b"x" * 9000], ids=["lines", "one line"])
def test_an_event_that_never_ends_is_refused(piece: bytes) -> None:
    parser = EventStreamParser()
    for _ in range(MAX_EVENT_BYTES // 9000 - 1):
        assert parser.feed(piece) == []
    with pytest.raises(EventTooLargeError):
        parser.feed(piece * 3)
