"""Server-sent events off the wire, each of bounded size (WHATWG HTML, 9.2.6). Pure, no I/O."""

import re
from dataclasses import dataclass

from infrastructure.mcp.transports.stdio_framing import OversizedLine

_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")
_HEAD_BYTES = 4096
_TAIL_BYTES = 1024
_DATA = re.compile(rb"(?:\A|[\r\n])data: ?")


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One event. `id` is empty where the server gave none, `retry_ms` None likewise."""

    type: str
    data: bytes
    id: str = ""
    retry_ms: int | None = None


class EventStream:
    """Cuts a byte stream into events, keeping at most `max_bytes` of one that is not complete.

    An event above that is discarded while it arrives; what is known of its data is handed on in its place.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0
        self._dropped = 0
        self._head = b""
        self._skipped = 0

    @property
    def unfinished_bytes(self) -> int:
        """The size of the event that is not complete, as far as it has come."""
        return self._dropped + len(self._buffer)

    def take_skipped(self) -> int:
        """How many comments and events without data have come since the last look."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def feed(self, data: bytes) -> list[StreamEvent | OversizedLine]:
        """The events completed by `data`; comments and events without data give none."""
        self._buffer += data
        events: list[StreamEvent | OversizedLine] = []
        while end := _END.search(self._buffer, self._searched):
            block = bytes(self._buffer[: end.end()])
            del self._buffer[: end.end()]
            event = self._read(block)
            if event is not None:
                events.append(event)
            else:
                self._skipped += 1
            self._searched, self._dropped = 0, 0
        if self._dropped + len(self._buffer) > self._max_bytes:
            self._discard()
        self._searched = max(0, len(self._buffer) - 3)
        return events

    def _discard(self) -> None:
        if not self._dropped:
            self._head = bytes(self._buffer[:_HEAD_BYTES])
        surplus = max(0, len(self._buffer) - _TAIL_BYTES)
        self._dropped += surplus
        del self._buffer[:surplus]

    def _read(self, block: bytes) -> StreamEvent | OversizedLine | None:
        size = self._dropped + len(block)
        if size <= self._max_bytes:
            return _read_event(block)
        head = self._head if self._dropped else block[:_HEAD_BYTES]
        prefix = _DATA.search(head)
        return OversizedLine(size, head[prefix.end() if prefix else 0 :], block[-_TAIL_BYTES:].rstrip())


def _read_event(block: bytes) -> StreamEvent | None:
    fields: dict[bytes, bytes] = {}
    data: list[bytes] = []
    for line in block.splitlines():
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        else:
            fields[name] = value
    retry = fields.get(b"retry", b"")
    event_id = fields.get(b"id", b"").decode(errors="replace")
    if not data and not event_id:
        return None
    return StreamEvent(
        type=fields.get(b"event", b"message").decode(errors="replace"),
        data=b"\n".join(data),
        id=event_id,
        retry_ms=int(retry) if retry.isdigit() else None,
    )
