"""A kept connection over HTTP/1.1: one POST at a time, its answer whole or as it comes.

Below: asyncio and llhttp. Above: the pool that keeps connections (`kept_http.py`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple, Protocol, cast

import httptools

_MAX_HEAD_BYTES = 64 * 1024
_HIGH_WATER_BYTES = 256 * 1024
_LENGTH = b"content-length"
_WITHOUT_BODY = (204, 304)
"""Whatever their length says (RFC 9112, section 6.3)."""
_BLANK_LINE = b"\r\n\r\n"


def counted_bytes(limit: int) -> int:
    """How far a body over its limit is read, so that its size can be told; a body without end must have one."""
    return 32 * limit


class Origin(NamedTuple):
    """Where connections go: a host as it is resolved, and its name in `Host`. A tuple, as its hash is taken for each request."""

    host: str
    port: int
    is_tls: bool
    authority: str


class BrokenError(Exception):
    """The connection ended, or what came is not HTTP, before the answer was complete."""


class HttpAnswer:
    """What came back: the head and, of anything but an event stream, the whole body. Header names are in lower case. `close`
    it when it is not read to its end."""

    __slots__ = ("_connection", "body", "content_length", "headers", "size", "status")

    def __init__(self, connection: "KeptConnection", status: int, headers: dict[str, str]) -> None:
        self._connection = connection
        self.status = status
        self.headers = headers
        length = headers.get("content-length", "")
        self.content_length = int(length) if length.isdecimal() else None
        self.body: bytes | None = None
        self.size = 0
        """Bytes of the body, of which no more than the limit are kept."""

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises BrokenError."""
        while True:
            if chunk := self.taken():
                yield chunk
            elif self.is_complete:
                self.close()
                return
            else:
                await self.more()

    @property
    def is_complete(self) -> bool:
        """Whether nothing more comes; until `close`."""
        return self.body is not None or self._connection.is_complete

    def taken(self) -> bytes:
        """What has come of the body and was not taken yet."""
        if self.body is None:
            return self._connection.taken()
        body, self.body = self.body, b""
        return body

    async def more(self, wait_s: float | None = None) -> None:
        """Wait until something has come that was not taken, or the body is complete. Raises BrokenError, TimeoutError."""
        if self.body is None:
            await self._connection.more(wait_s)

    def close(self) -> None:
        """Nobody reads on."""
        self._connection.leave(self)


class Pool(Protocol):
    """Whose connections they are."""

    @property
    def streams(self) -> Callable[[str], bool]:
        """Whether a body of a type, in lower case, is handed on as it comes."""
        ...

    def put_back(self, connection: "KeptConnection") -> None:
        """It is free again."""
        ...

    def ended(self, connection: "KeptConnection") -> None:
        """It is gone."""
        ...


class _SeenHead(NamedTuple):
    """The head of an answer that came whole, byte for byte before and after its length, and what was made of it."""

    before: bytes
    after: bytes
    status: int
    headers: dict[str, str]


class KeptConnection(asyncio.Protocol):
    """A socket and the exchange it is in. What llhttp finds comes in through the `on_` methods. What an answer begins with is mostly
    what the last one began with, but for its length: then it is not parsed again."""

    def __init__(self, pool: Pool, origin: Origin) -> None:
        self._pool = pool
        self.origin = origin
        self.used_at = 0.0
        self.user: object = None
        """Who may end it, for those who ask it without the pool; nobody once its exchange is complete."""
        self.is_over = False
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiting: asyncio.Future[HttpAnswer] | None = None
        self._more: asyncio.Future[None] | None = None
        self._answer: HttpAnswer | None = None
        self._seen: _SeenHead | None = None
        self._ended: HttpAnswer | None = None
        self._messages = 0
        self._is_between = True
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._queued = 0
        self._limit = 0
        self._streams = self._complete = self._keeps = self._is_paused = False

    async def ask(self, head: bytes, body: bytes, limit: int, wait_s: float | None = None) -> HttpAnswer:
        """Send a request; the answer, when it is there or its stream begins. Raises BrokenError, TimeoutError."""
        assert self._transport is not None
        self._limit = limit
        waiting: asyncio.Future[HttpAnswer] = self._loop.create_future()
        self._waiting = waiting
        self._transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
        timer = None if wait_s is None else self._loop.call_later(wait_s, self._silent, waiting)
        try:
            return await waiting
        except BaseException:
            if self._waiting is waiting:
                self._waiting = None
                self.abort()
            elif not waiting.cancelled() and waiting.exception() is None:
                waiting.result().close()  # it came, and so did the cancellation
            raise
        finally:
            if timer is not None:
                timer.cancel()

    @property
    def is_complete(self) -> bool:
        """Whether the end of a streamed body has come."""
        return self._complete

    def taken(self) -> bytes:
        """What has come of a streamed body and was not taken yet."""
        parts = self._parts
        if not parts:
            return b""
        self._parts, self._queued = [], 0
        self._resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def more(self, wait_s: float | None) -> None:
        """Wait for more of a streamed body, or its end. Raises BrokenError, TimeoutError."""
        if self._parts or self._complete:
            return
        if self.is_over:
            raise BrokenError
        self._resume()
        more = self._more = self._loop.create_future()
        timer = None if wait_s is None else self._loop.call_later(wait_s, self._silent, more)
        try:
            await more
        finally:
            self._more = None
            if timer is not None:
                timer.cancel()

    def leave(self, answer: HttpAnswer) -> None:
        """Whoever had the answer is done with it: unless all of it was read, that ends the connection."""
        if self._answer is answer:
            if self._complete:
                self._over()
            else:
                self.abort()

    def abort(self) -> None:
        """End it now."""
        self.is_over = True
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are none by inheritance

    def data_received(self, data: bytes) -> None:
        if self._waiting is None and self._answer is None:
            self.abort()  # nobody asked anything
            return
        messages, is_alone = self._messages, self._is_between and not self._head_bytes
        if is_alone and self._seen is not None and self._answered_again(self._seen, data):
            return
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail()
        except httptools.HttpParserError:
            self._fail()
        if self._answer is None and self._head_bytes > _MAX_HEAD_BYTES and self._waiting is not None:
            self._fail()
        ended, self._ended = self._ended, None
        if ended is not None and is_alone and self._is_between and self._messages == messages + 1:
            self._seen = _head_of(ended, data)

    def eof_received(self) -> None:
        """Nothing more can be asked. A body without a length ends here, which `connection_lost` sees to."""
        if self._waiting is None and self._answer is None:
            self.is_over = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True
        self._pool.ended(self)
        if exc is None and self._answer is not None and not self._complete and _ends_with_connection(self._answer):
            self.on_message_complete()
        self._wake(BrokenError())

    def _answered_again(self, seen: _SeenHead, data: bytes) -> bool:
        """Whether that is one answer like the last one and nothing else. The parser has then seen all of the answers before, or
        nothing of them."""
        if not data.startswith(seen.before):
            return False
        end = data.find(b"\r", len(seen.before))
        length, start = data[len(seen.before) : end], end + len(seen.after)
        size = len(data) - start
        if length != b"%d" % size or size > self._limit or not data.startswith(seen.after, end):
            return False
        answer = self._answer = HttpAnswer(self, seen.status, {**seen.headers, "content-length": length.decode()})
        answer.size, answer.body = size, data[start:]
        self._complete = self._keeps = True
        self._answered()
        self._over()
        return True

    # --- llhttp ---

    def on_message_begin(self) -> None:
        self._messages += 1
        self._is_between = False
        self._headers = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        key = name.decode("latin-1").lower()
        text = value.decode("utf-8", "surrogateescape").strip()
        known = self._headers.get(key)
        self._headers[key] = text if known is None else f"{known}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return  # 1xx: the answer is yet to come
        if self._waiting is None:
            self.abort()  # a second answer to one request
            return
        self._answer = HttpAnswer(self, status, self._headers)
        self._streams = self._pool.streams(self._headers.get("content-type", "").lower())
        length = self._answer.content_length
        if self._streams:
            self._answered()
        elif length is not None and length > self._limit:
            self._answer.size = length
            self._too_large(self._answer)

    def on_body(self, body: bytes) -> None:
        answer = self._answer
        if answer is None:
            return
        if self._streams:
            self._parts.append(body)
            self._queued += len(body)
            if self._queued > _HIGH_WATER_BYTES and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
            self._wake(None)
            return
        answer.size += len(body)
        if answer.size <= self._limit:
            self._parts.append(body)
            return
        self._parts.clear()
        if answer.size > counted_bytes(self._limit):
            self._too_large(answer)

    def on_message_complete(self) -> None:
        self._is_between = True
        answer = self._answer
        if answer is None:
            return  # of a 1xx
        self._complete, self._keeps = True, self._parser.should_keep_alive()
        if self._streams:
            self._wake(None)
            return
        answer.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._ended = answer if self._keeps else None
        self._answered()
        self._over()

    # --- the end of an exchange ---

    def _too_large(self, answer: HttpAnswer) -> None:
        """The rest of the body is not read."""
        answer.body = b""
        self._answered()
        self._answer = None
        self.abort()

    def _answered(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None or self._answer is None:
            return
        if not waiting.done():
            waiting.set_result(self._answer)
        elif self._streams:
            self.abort()  # whoever waited has just given up: nobody will read it

    def _over(self) -> None:
        """The exchange is complete: the connection is free again, if the server keeps it."""
        self._answer = self.user = None
        self._parts, self._queued, self._head_bytes = [], 0, 0
        self._streams = self._complete = False
        if self.is_over or not self._keeps:
            self.abort()
            return
        self._resume()
        self.used_at = self._loop.time()
        self._pool.put_back(self)

    def _resume(self) -> None:
        if self._is_paused and self._transport is not None and not self.is_over:
            self._is_paused = False
            self._transport.resume_reading()

    def _silent(self, waiting: "asyncio.Future[HttpAnswer] | asyncio.Future[None]") -> None:
        if not waiting.done():
            waiting.set_exception(TimeoutError())

    def _fail(self) -> None:
        self.abort()
        self._wake(BrokenError())

    def _wake(self, failure: BrokenError | None) -> None:
        if self._more is not None and not self._more.done():
            self._more.set_result(None)
        if failure is not None and self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            if not waiting.done():
                waiting.set_exception(failure)


def _head_of(answer: HttpAnswer, data: bytes) -> _SeenHead | None:
    """The head of an answer that came in one piece, alone; None for one whose length is not a plain number in it."""
    length, size = answer.headers.get("content-length", ""), answer.size
    start = data.find(_BLANK_LINE) + len(_BLANK_LINE)
    head = data[:start]
    if start != len(data) - size or answer.content_length != size or head.lower().count(_LENGTH) != 1:
        return None
    before, _, after = head.partition(f": {length}\r\n".encode())
    if not before.lower().endswith(b"\n" + _LENGTH) or "transfer-encoding" in answer.headers:
        return None
    if answer.status in _WITHOUT_BODY:
        return None
    return _SeenHead(before + b": ", b"\r\n" + after, answer.status, answer.headers)


def _ends_with_connection(answer: HttpAnswer) -> bool:
    """Whether only the end of the connection ends the body (RFC 9112, section 6.3)."""
    return answer.content_length is None and "transfer-encoding" not in answer.headers
