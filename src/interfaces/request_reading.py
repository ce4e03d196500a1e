"""What llhttp reports of the requests on a connection, counted: where one begins and ends, and how large its head is."""

from enum import Enum

import httptools

MAX_HEAD_BYTES, MAX_HEADER_LINES = 32 * 1024, 100


class Phase(Enum):
    """What the next byte of a connection belongs to."""

    BETWEEN = "between"
    HEAD = "head"
    BODY = "body"


class RequestReading:
    """Counts of a connection: requests that have `begun`, whose head is complete (`headed`), and that are `completed`.

    `body`: bytes of the present request's body, which may be reset. `loose`: bytes of something incomplete, such as a header
    line, which the parser holds. `is_too_large`: a head, with the trailers of its request, went past what it may have."""

    def __init__(self) -> None:
        self.phase = Phase.BETWEEN
        self.begun = self.headed = self.completed = 0
        self.body = self.loose = 0
        self.is_too_large = False
        self._lines = self._size = 0
        self._events = 0

    def feed(self, parser: httptools.HttpRequestParser, data: bytes) -> None:
        """Let the parser read. Raises what it raises."""
        events = self._events
        parser.feed_data(data)
        if self._events == events:
            self.loose += len(data)
        else:
            self.loose = len(data) - data.rfind(b"\n") - 1 if self.phase is Phase.HEAD else 0
        self._check_head()

    def on_message_begin(self) -> None:
        """A request begins."""
        self.phase = Phase.HEAD
        self.begun += 1
        self._events += 1
        self._lines = self._size = self.body = 0

    def on_url(self, url: bytes) -> None:
        """A part of its URL."""
        self._events += 1
        self._size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header or trailer."""
        self._events += 1
        self._lines += 1
        self._size += len(name) + len(value) + 4

    def on_headers_complete(self) -> None:
        """Its head is complete."""
        self._events += 1
        self._check_head()
        self.headed += 1
        self.phase = Phase.BODY

    def on_chunk_header(self) -> None:
        """A part of a body of unknown length follows."""
        self._events += 1

    def on_body(self, body: bytes) -> None:
        """A part of its body."""
        self._events += 1
        self.body += len(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._events += 1
        self.completed += 1
        self.phase = Phase.BETWEEN
        self._check_head()

    def _check_head(self) -> None:
        """Where a head may end, and at the end of what was received; `_size` and `_lines` only grow in between."""
        if self._size > MAX_HEAD_BYTES or self._lines > MAX_HEADER_LINES or self.loose > MAX_HEAD_BYTES:
            self.is_too_large = True
