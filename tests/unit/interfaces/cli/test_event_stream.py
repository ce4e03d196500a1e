"""Decoding server-sent events."""

import pytest

from interfaces.cli.api import ServerEvent
from interfaces.cli.event_stream import EventStreamDecoder

STREAM = (
    'id: 1\nevent: message.delta\ndata: {"text": "a\u2028b"}\n\n'
    ": keep-alive\n\n"
    "id: 2\r\nevent: run.completed\r\ndata: one\r\ndata: two\r\n\r\n"
    "event: end\rdata: {}\r\r"
    "id: 9\nevent: never.finished\ndata: x\n"
).encode()
EVENTS = [
    ServerEvent(id="1", type="message.delta", data='{"text": "a\u2028b"}'),
    ServerEvent(id="2", type="run.completed", data="one\ntwo"),
    ServerEvent(id=None, type="end", data="{}"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_come_out_the_same_however_the_bytes_are_cut(size: int) -> None:
    decoder = EventStreamDecoder()
    found = [found for start in range(0, len(STREAM), size) for found in decoder.feed(STREAM[start : start + size])]
    assert found == EVENTS


def test_an_event_without_data_is_none() -> None:
    assert EventStreamDecoder().feed(b"event: ping\n\nid: 4\n\n") == []


def test_a_type_that_is_not_named_is_message() -> None:
    assert EventStreamDecoder().feed(b"data:x\n\n") == [ServerEvent(id=None, type="message", data="x")]
