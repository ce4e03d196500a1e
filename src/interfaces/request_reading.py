"""Counts llhttp's events on a connection: where requests begin and end, and the size of their
heads."""

from enum import Enum
from itertools import chain

import httptools

MAX_HEAD_BYTES, MAX_HEADER_LINES = 32 * 1024, 100
MAX_CHUNKS = 100_000
"""Chunks of a body: each takes microseconds, however small it is."""


class Phase(Enum):
    """The part of a request that the next byte belongs to."""

    BETWEEN = "between"
    HEAD = "head"
    BODY = "body"


class RequestReading:
    """Counts of requests: `begun`, with a complete head (`headed`), and `completed`.
    - `body`: bytes of the current request's body, resettable.
    - `loose`: bytes of an incomplete token that the parser holds, such as a header line.
    - `is_too_large`: a head, with its trailers, exceeded its bounds.
    - `chunks`: of the current request's body.
    """

    def __init__(self) -> None:
        self.phase = Phase.BETWEEN
        self.begun = self.headed = self.completed = 0
        self.body = self.loose = self.chunks = 0
        self.is_too_large = False
        self._url_size = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._events = 0
        """Callbacks except `on_header`, which only appends: a request has many headers."""

    def feed(self, parser: httptools.HttpRequestParser, data: bytes) -> None:
        """Parse the data. Raises the parser's errors."""
        events, lines = self._events, len(self._headers)
        parser.feed_data(data)
        if self._events == events and len(self._headers) == lines:
            self.loose += len(data)
        else:
            self.loose = len(data) - data.rfind(b"\n") - 1 if self.phase is Phase.HEAD else 0
        self._check_head()

    def on_message_begin(self) -> None:
        self.phase = Phase.HEAD
        self.begun += 1
        self._events += 1
        self._url_size = self.body = self.chunks = 0
        self._headers = []

    def on_url(self, url: bytes) -> None:
        self._events += 1
        self._url_size += len(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._events += 1
        self._check_head()
        self.headed += 1
        self.phase = Phase.BODY

    def on_chunk_header(self) -> None:
        """A chunk of a body of unknown length follows."""
        self._events += 1
        self.chunks += 1

    def on_body(self, body: bytes) -> None:
        self._events += 1
        self.body += len(body)

    def on_message_complete(self) -> None:
        self._events += 1
        self.completed += 1
        self.phase = Phase.BETWEEN
        self._check_head()

    def _check_head(self) -> None:
        """Called where a head may end and after each read; the head only grows in between."""
        lines = len(self._headers)
        size = self._url_size + 4 * lines + sum(map(len, chain.from_iterable(self._headers)))
        if size > MAX_HEAD_BYTES or lines > MAX_HEADER_LINES or self.loose > MAX_HEAD_BYTES:
            self.is_too_large = True
