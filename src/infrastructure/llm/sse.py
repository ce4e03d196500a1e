"""Server-sent events as bytes: the data of each event, whatever chunks it arrives in.

Below: a chunked body. Above: the replies, which decode the data. Format: WHATWG HTML, "Server-sent events".
"""

MAX_EVENT_BYTES = 4 * 1024 * 1024


class EventTooLargeError(Exception):
    """An event is larger than `MAX_EVENT_BYTES`."""


class EventStreamParser:
    """Splits a byte stream into the data of its events; comments and every field but `data` are dropped.

    Lines may end with LF or CRLF. An event still open when the stream ends is discarded, as the standard says.
    """

    def __init__(self) -> None:
        self._open_line: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of every event that `chunk` completes, in order. Raises EventTooLargeError."""
        if self._size or self._data or b"\r" in chunk:
            return self._lines(chunk)
        events: list[bytes] = []
        *blocks, rest = chunk.split(b"\n\n")
        for block in blocks:
            # What nearly every event is: one line of data.
            if block.startswith(b"data: ") and b"\n" not in block and len(block) <= MAX_EVENT_BYTES:
                events.append(block[6:])
            else:
                events += self._lines(block + b"\n\n")
        if rest:
            events += self._lines(rest)
        return events

    def _lines(self, chunk: bytes) -> list[bytes]:
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = (b"".join([*self._open_line, chunk]) if self._open_line else chunk).split(b"\n")
        self._size -= sum(map(len, self._open_line))
        self._open_line = []
        rest = lines.pop()
        events: list[bytes] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line[6:] if line[5:6] == b" " else line[5:])
            elif line in {b"", b"\r"} and self._data:
                events.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data = []
                self._size = 0
        self._keep(rest)
        return events

    def _keep(self, piece: bytes) -> None:
        """Hold the beginning of a line back, without copying what is held already."""
        if piece:
            self._open_line.append(piece)
            self._grow(len(piece))

    def _take(self, value: bytes) -> None:
        value = value.removesuffix(b"\r")
        self._data.append(value)
        self._grow(len(value))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLargeError
