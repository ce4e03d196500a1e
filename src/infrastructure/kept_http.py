"""HTTP/1.1 POSTs over kept connections, to MCP servers and models: one write per request, one wake-up per answer.

A general client costs five times as much per call, most of it in objects per request. Below: asyncio and llhttp; who may be
reached is looked at by the caller (URLs) and by `resolve` (addresses, which are connected to as they were found).
"""

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

import httptools

KEPT_FOR_S = 4.0
"""How long an unused connection is kept: less than the 5 s of Node.js and uvicorn. A call that meets a connection as its server ends
it has an unknown outcome, which a new connection costs less than."""
_MAX_HEAD_BYTES = 64 * 1024
_HIGH_WATER_BYTES = 256 * 1024
OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
"""What a request says of itself: on a connection that several servers' requests may share, nobody else does."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host that may be connected to. Raises OSError."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where connections go: a host as it is resolved, and its name in `Host`."""

    host: str
    port: int
    is_tls: bool
    authority: str


class NotConnectedError(Exception):
    """No address of the origin could be connected to: nothing was sent."""


class BrokenError(Exception):
    """The connection ended, or what came is not HTTP, before the answer was complete."""


def head_of(origin: Origin, target: str, headers: Mapping[str, str]) -> bytes:
    """The head of a POST up to its length. Raises ValueError for a header that would be several."""
    lines = [f"POST {target} HTTP/1.1\r\nHost: {origin.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items() if name not in OWN_HEADERS]
    head = "\r\n".join(lines)
    if head.count("\n") != len(lines) or head.count("\r") != len(lines) or "\0" in head:
        raise ValueError("a header may not contain line ends")
    return f"{head}\r\nContent-Length: ".encode()


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
        if self.body is not None:
            yield self.body
            return
        while (chunk := await self._connection.next_chunk()) is not None:
            yield chunk

    def close(self) -> None:
        """Nobody reads on."""
        self._connection.leave(self)


def is_event_stream(content_type: str) -> bool:
    """Whether a body of this type, in lower case, is handed on as it comes."""
    return content_type.startswith("text/event-stream")


class KeptConnections:
    """Connections by origin, each of one request at a time. `context` is asked for at the first https origin; `streams` says by
    their type which bodies are handed on as they come."""

    def __init__(
        self,
        *,
        resolve: Resolve,
        context: Callable[[], ssl.SSLContext],
        connect_timeout_s: float,
        kept_for_s: float = KEPT_FOR_S,
        streams: Callable[[str], bool] = is_event_stream,
    ) -> None:
        self.streams = streams
        self._resolve = resolve
        self._context = context
        self._connect_timeout_s = connect_timeout_s
        self._kept_for_s = kept_for_s
        self._idle: dict[Origin, deque[KeptConnection]] = {}
        self._open: set[KeptConnection] = set()
        self._sweep: asyncio.TimerHandle | None = None

    async def post(self, origin: Origin, head: bytes, body: bytes, *, limit: int) -> HttpAnswer:
        """The answer to a request; of a body over `limit` only its size is known. Raises NotConnectedError, BrokenError;
        cancelling the wait ends the connection, which tells the server."""
        connection = self.take(origin) or await self._connected(origin)
        return await connection.ask(head, body, limit)

    async def close(self) -> None:
        """Ends every connection."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        self._idle.clear()
        for connection in list(self._open):
            connection.abort()

    def put_back(self, connection: "KeptConnection") -> None:
        """A connection is free again."""
        self._idle.setdefault(connection.origin, deque()).append(connection)
        if self._sweep is None:
            self._sweep = asyncio.get_running_loop().call_later(self._kept_for_s, self._end_unused)

    def ended(self, connection: "KeptConnection") -> None:
        """A connection is gone."""
        self._open.discard(connection)
        idle = self._idle.get(connection.origin)
        if idle is not None and connection in idle:
            idle.remove(connection)
            if not idle:
                del self._idle[connection.origin]

    def take(self, origin: Origin) -> "KeptConnection | None":
        """A connection that is free, to be asked at once: the one used last, so that those which are not needed grow old."""
        idle = self._idle.get(origin)
        oldest = asyncio.get_running_loop().time() - self._kept_for_s
        while idle:
            connection = idle.pop()
            if connection.used_at <= oldest:
                connection.abort()
            elif not connection.is_over:
                return connection
        return None

    async def _connected(self, origin: Origin) -> "KeptConnection":
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                addresses = await self._resolve(origin.host, origin.port)
                for number, address in enumerate(addresses, 1):
                    try:
                        _, connection = await loop.create_connection(
                            lambda: KeptConnection(self, origin),
                            address,
                            origin.port,
                            ssl=self._context() if origin.is_tls else None,
                            server_hostname=origin.host if origin.is_tls else None,
                        )
                    except OSError:
                        if number == len(addresses):
                            raise
                    else:
                        self._open.add(connection)
                        return connection
        except (OSError, TimeoutError) as exc:
            raise NotConnectedError from exc
        raise NotConnectedError

    def _end_unused(self) -> None:
        self._sweep = None
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._kept_for_s
        for origin, idle in list(self._idle.items()):
            while idle and idle[0].used_at <= oldest:
                idle.popleft().abort()
            if not idle:
                self._idle.pop(origin, None)
        if self._idle:
            self._sweep = loop.call_later(self._kept_for_s, self._end_unused)


class KeptConnection(asyncio.Protocol):
    """A socket and the exchange it is in. What llhttp finds comes in through the `on_` methods."""

    def __init__(self, pool: KeptConnections, origin: Origin) -> None:
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
        self._headers: dict[str, str] = {}
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._queued = 0
        self._limit = 0
        self._streams = self._complete = self._keeps = self._is_paused = False

    async def ask(self, head: bytes, body: bytes, limit: int) -> HttpAnswer:
        """Send a request; the answer, when it is there or its stream begins. Raises BrokenError."""
        assert self._transport is not None
        self._limit = limit
        waiting: asyncio.Future[HttpAnswer] = self._loop.create_future()
        self._waiting = waiting
        self._transport.write(b"%b%d\r\n\r\n%b" % (head, len(body), body))
        try:
            return await waiting
        except BaseException:
            if self._waiting is waiting:
                self._waiting = None
                self.abort()
            elif not waiting.cancelled() and waiting.exception() is None:
                waiting.result().close()  # it came, and so did the cancellation
            raise

    async def next_chunk(self) -> bytes | None:
        """More of a streamed body; None at its end. Raises BrokenError."""
        while not self._parts:
            if self._complete:
                self._over()
                return None
            if self.is_over:
                raise BrokenError
            self._resume()
            self._more = self._loop.create_future()
            try:
                await self._more
            finally:
                self._more = None
        chunk = b"".join(self._parts)
        self._parts, self._queued = [], 0
        self._resume()
        return chunk

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
        self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail()
        except httptools.HttpParserError:
            self._fail()
        if self._answer is None and self._head_bytes > _MAX_HEAD_BYTES and self._waiting is not None:
            self._fail()

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

    # --- llhttp ---

    def on_message_begin(self) -> None:
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
            self._answer.size, self._answer.body = length, b""
            self._answered()
            self._answer = None
            self.abort()

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
        else:
            self._parts.clear()

    def on_message_complete(self) -> None:
        answer = self._answer
        if answer is None:
            return  # of a 1xx
        self._complete, self._keeps = True, self._parser.should_keep_alive()
        if self._streams:
            self._wake(None)
            return
        answer.body = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._answered()
        self._over()

    # --- the end of an exchange ---

    def _answered(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done() and self._answer is not None:
            waiting.set_result(self._answer)

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


def _ends_with_connection(answer: HttpAnswer) -> bool:
    """Whether only the end of the connection ends the body (RFC 9112, section 6.3)."""
    return answer.content_length is None and "transfer-encoding" not in answer.headers
