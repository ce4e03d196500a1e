"""Parser of server-sent events from bytes, each event of bounded size (WHATWG HTML, 9.2.6). No
I/O."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_HEAD_BYTES = 4096
_TAIL_BYTES = 1024
_DATA = re.compile(rb"(?:\A|[\r\n])data: ?")
_PLAIN = re.compile(rb"(?:\A|(?<=\n\n))(?:event: (.*)\n)?data: (.*)\n\n")
"""An event of one line of data, after one with its type at most. Nearly all events of models are
such. It begins at the start or after an empty line only, so that no line is searched twice."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS = 9


class StreamEvent(NamedTuple):
    """One event. `id` is empty and `retry_ms` None where the event has no such field."""

    data: bytes
    type: str = "message"
    id: str = ""
    retry_ms: int | None = None


class OversizedEvent(NamedTuple):
    """A discarded event: its size in bytes, and the start and end of its data."""

    size: int
    head: bytes
    tail: bytes


class OversizedEventError(Exception):
    """An event was discarded because of its size."""


class EventStream:
    """Splits a byte stream, cut anywhere, into events. Holds at most `max_bytes` of an event that
    is not complete.

    - Lines end with LF, CRLF or CR.
    - Comments and events with neither data nor an id are skipped. An event with an id alone has
      empty data.
    - A larger event is discarded while it arrives and becomes an `OversizedEvent`. With `limit_of`,
      an event may have as many bytes as that says of the beginning of its data.
    - An event that is not complete when the stream ends is discarded.
    """

    def __init__(self, max_bytes: int, *, limit_of: Callable[[bytes], int] | None = None) -> None:
        self._max_bytes = self._limit = max_bytes
        self._limit_of = limit_of
        self._buffer = bytearray()
        self._searched = 0
        self._dropped = 0
        self._head = b""
        self._skipped = 0
        self._discarded = 0
        self._at_start = True
        self._has_returns = False

    @property
    def unfinished_bytes(self) -> int:
        """Size of the part of an incomplete event that has arrived."""
        return self._dropped + len(self._buffer)

    def take_skipped(self) -> int:
        """Number of comments and events skipped since the last call."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def take_discarded(self) -> int:
        """Bytes discarded since the last call, of events that are too large."""
        discarded, self._discarded = self._discarded, 0
        return discarded

    def feed(self, data: bytes) -> list[StreamEvent | OversizedEvent]:
        """The events that `data` completes."""
        self._add(data)
        return self._completed()

    def feed_pairs(self, data: bytes) -> Iterable[tuple[bytes | None, bytes]]:
        """As `feed`, with only the type, if it has one, and the data of each event. One search
        finds the events of nearly all streams of models, at a third of the cost. Raises
        OversizedEventError."""
        self._add(data)
        plain = self._plain()
        if plain is not None:
            return plain
        pairs = []
        for event in self._completed():
            if isinstance(event, OversizedEvent):
                raise OversizedEventError
            pairs.append((event.type.encode(), event.data))
        return pairs

    def _add(self, data: bytes) -> None:
        self._buffer += data
        self._has_returns = self._has_returns or b"\r" in data

    def _plain(self) -> Iterable[tuple[bytes | None, bytes]] | None:
        """The complete events of the buffer, if all of them are plain; else None, and they are
        left."""
        buffer = self._buffer
        if self._has_returns or self._dropped or len(buffer) > self._max_bytes:
            return None
        if buffer.find(b"\n\n", self._searched) < 0:
            self._searched = max(0, len(buffer) - 3)
            return ()
        text = bytes(buffer)
        if self._at_start:
            text = text.removeprefix(_BYTE_ORDER_MARK)
        parts = _PLAIN.split(text)  # what is between two events, the type and the data of the second, and so on
        rest = parts[-1]
        if any(parts[:-1:3]) or b"\n\n" in rest:
            return None
        self._at_start = False
        buffer[:] = rest
        self._searched = max(0, len(rest) - 3)
        return zip(parts[1::3], parts[2::3], strict=True)

    def _completed(self) -> list[StreamEvent | OversizedEvent]:
        """The complete events of the buffer, each searched alone."""
        events: list[StreamEvent | OversizedEvent] = []
        while end := self._end():
            block = bytes(self._buffer[:end])
            del self._buffer[:end]
            event = self._read(block)
            if event is not None:
                events.append(event)
            else:
                self._skipped += 1
            self._searched, self._dropped, self._limit = 0, 0, self._max_bytes
        if self._is_too_large(self._buffer):
            self._discard()
        self._searched = max(0, len(self._buffer) - 3)
        return events

    def _end(self) -> int:
        """Where the first event ends; 0 if it is not complete."""
        if not self._has_returns:
            found = self._buffer.find(b"\n\n", self._searched)
            return found + 2 if found >= 0 else 0
        end = _END.search(self._buffer, self._searched)
        return end.end() if end else 0

    def _is_too_large(self, part: bytes | bytearray) -> bool:
        """Whether the event is that ends with `part`, which is all of it if nothing was dropped."""
        if not self._dropped and len(part) > self._limit and self._limit_of is not None:
            self._limit = max(self._limit, self._limit_of(_data_in(bytes(part[:_HEAD_BYTES]))))
        return self._dropped + len(part) > self._limit

    def _discard(self) -> None:
        if not self._dropped:
            self._head = bytes(self._buffer[:_HEAD_BYTES])
        surplus = max(0, len(self._buffer) - _TAIL_BYTES)
        self._dropped += surplus
        self._discarded += surplus
        del self._buffer[:surplus]

    def _read(self, block: bytes) -> StreamEvent | OversizedEvent | None:
        if self._is_too_large(block):
            head = self._head if self._dropped else block[:_HEAD_BYTES]
            return OversizedEvent(self._dropped + len(block), _data_in(head), block[-_TAIL_BYTES:].rstrip())
        if self._at_start:
            self._at_start = False
            block = block.removeprefix(_BYTE_ORDER_MARK)
        if self._has_returns:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return _read_event(block.rstrip(b"\n"))


def _data_in(head: bytes) -> bytes:
    """The data in the beginning of an event."""
    prefix = _DATA.search(head)
    return head[prefix.end() if prefix else 0 :]


def _read_event(block: bytes) -> StreamEvent | None:
    """Reads an event whose lines end with LF."""
    fields: dict[bytes, bytes] = {}
    data: list[bytes] = []
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name != b"id" or b"\0" not in value:
            fields[name] = value
    retry = fields.get(b"retry", b"")
    event_id = fields.get(b"id", b"").decode(errors="replace")
    if not data and not event_id:
        return None
    return StreamEvent(
        data=b"\n".join(data),
        type=fields.get(b"event", b"").decode(errors="replace") or "message",
        id=event_id,
        retry_ms=int(retry) if retry.isdigit() and len(retry) <= _MAX_RETRY_DIGITS else None,
    )
