"""Bounds on inbound requests before parsing: size of heads, time for heads and bodies,
connections. It works between the socket and uvicorn, which with httptools has no such bounds
(ADR 0034). A second parser of the same library counts the bytes and passes them on unchanged,
through uvicorn's public interface."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any, cast

import httptools
import msgspec
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from application.system.memory_budget import MemoryBudget
from interfaces.counted_body import CountedBody
from interfaces.request_notes import notes_of
from interfaces.request_reading import MAX_CHUNKS, MAX_HEAD_BYTES, MAX_HEADER_LINES, Phase, RequestReading

logger = logging.getLogger(__name__)

IDLE_S = 75
"""Idle time before a connection is closed: longer than that of clients and load balancers (usually
60 s), so that they close first. Closing here could drop a request with an unknown outcome."""
_MIN_BYTES_PER_S = 4 * 1024  # a slower body times out
_DRAINED_BYTES = 64 * 1024  # the rest of a body that is read and discarded, so that the connection can be used again
_LINGER_BYTES, _LINGER_S = (
    16 * 1024 * 1024,
    1.0,
)  # bytes of a refused body that are read first: closing at once could lose the response
_MAX_UNANSWERED = 100
"""Requests that a client may send on one connection before it has their responses. uvicorn queues
them without bound."""
_AT_ONCE, _PAUSE_S = 100, 0.005
_SCOPE_KEY = "dragoman_connection"
_HEAD_START = b"HTTP/1.1 "
"""A part of a body that begins so is sent at the end of its step, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundLimits:
    """- `per_address` does not apply to the networks in `shared`, such as a reverse proxy's.
    - `timeout_s` applies to a head, and to a body in addition to its time at 4 KiB a second.
    - `body_bytes` are held by the bodies of requests together. Bodies that arrive with their heads
      are not counted.
    """

    connections: int = 4_096
    per_address: int = 1_024
    shared: tuple[IPv4Network | IPv6Network, ...] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
    timeout_s: float = 30.0
    body_bytes: int = 256 * 1024 * 1024
    look_every_s: float = 1.0


class Inbound:
    """The connections of one server. `protocol` is uvicorn's `http`; the instance wraps `app`."""

    def __init__(self, app: ASGIApp, limits: InboundLimits) -> None:
        self.limits = limits
        self._app = app
        self._open: set[_Connection] = set()
        self._by_address: Counter[str] = Counter()
        self._refused = 0
        self._bodies = MemoryBudget(limits.body_bytes)
        self._timer: asyncio.TimerHandle | None = None
        self.is_stopping = False

    def protocol(self, *, app_state: dict[str, Any], **given: Any) -> asyncio.Protocol:
        """The protocol of a new connection; arguments are those of uvicorn's protocol."""
        return _Connection(self, lambda state: HttpToolsProtocol(app_state={**app_state, **state}, **given))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, and close the connection if much of the request remains unread. A
        request that is cancelled while the process stops gets a 503, unless its response has
        started."""
        connection = cast("_Connection | None", scope.get("state", {}).get(_SCOPE_KEY))
        if connection is None:
            await self._app(scope, receive, send)
            return
        number = connection.begun = connection.begun + 1
        body: CountedBody | None = None
        try:
            if connection.reading.completed < number:
                with self._bodies.open() as hold:
                    body = connection.body = CountedBody(receive, hold)
                    send = connection.closing_send(number, scope, send, body)
                    await self._app(scope, cast(Receive, body.receive), send)
            else:
                await self._app(scope, receive, send)
        except asyncio.CancelledError:
            if not self.is_stopping or not await _answered_stopping(notes_of(scope).waits_for, send):
                raise
        finally:
            connection.answered += 1
            if connection.body is body:  # the next request may have begun
                connection.body = None

    def admit(self, connection: "_Connection", peer: str) -> bool:
        """Whether one more connection is allowed. It occupies a slot until `release`."""
        address, is_shared = self.counted(peer)
        if len(self._open) >= self.limits.connections or (
            not is_shared and self._by_address[address] >= self.limits.per_address
        ):
            self._refused += 1
            return False
        connection.address = address
        self._by_address[address] += 1
        self._open.add(connection)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.look_every_s, self._sweep)
        return True

    def release(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        self._by_address[connection.address] -= 1
        if not self._by_address[connection.address]:
            del self._by_address[connection.address]

    def _sweep(self) -> None:
        """One check of all connections, instead of a timer per request."""
        if self._refused:
            logger.warning("connections refused: too many are open", extra={"count": self._refused})
            self._refused = 0
        self._look_at(list(self._open))

    def _look_at(self, left: "list[_Connection]") -> None:
        """In batches: closing thousands at once blocks the event loop."""
        loop = asyncio.get_running_loop()
        for connection in left[-_AT_ONCE:]:
            connection.look(loop.time())
        del left[-_AT_ONCE:]
        if left:
            self._timer = loop.call_later(_PAUSE_S, self._look_at, left)
        else:
            self._timer = loop.call_later(self.limits.look_every_s, self._sweep) if self._open else None

    def counted(self, peer: str) -> tuple[str, bool]:
        """The counted address of a peer, and whether many clients share it. For IPv6 it is the
        network of one client."""
        try:
            address = ip_address(peer)
        except ValueError:
            return peer, False
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        is_shared = any(address in network for network in self.limits.shared)
        if isinstance(address, IPv6Address):
            return str(IPv6Network((address, 64), strict=False)), is_shared
        return str(address), is_shared


class _Connection(asyncio.Protocol):
    """A client's connection with uvicorn's protocol behind it. `begun` and `answered` count
    requests; `body` is that of a request that is served and may still be arriving."""

    def __init__(self, inbound: Inbound, make: Callable[[dict[str, Any]], HttpToolsProtocol]) -> None:
        self.reading = RequestReading()
        self.address = ""
        self.begun = self.answered = 0
        self.body: CountedBody | None = None
        self._started = self._discarded = 0
        self._inbound = inbound
        self._make = make
        self._inner: HttpToolsProtocol | None = None
        self._outbound: _ClosedBy | None = None
        self._parser: httptools.HttpRequestParser | None = None
        self._is_closing = False
        self._mark: object = None
        self._since = asyncio.get_running_loop().time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        if not self._inbound.admit(self, str(peer[0]) if peer else ""):
            self._is_closing = True
            self._transport.write(
                _answer(503, "too_many_connections", "Too many connections are open. Try again later.")
            )
            self._transport.close()
            return
        self._parser = httptools.HttpRequestParser(self.reading)
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self._inner = self._make({_SCOPE_KEY: self})
        self._outbound = _ClosedBy(self._transport, self._close, lambda: self._is_closing)
        self._inner.connection_made(cast(asyncio.Transport, self._outbound))

    def data_received(self, data: bytes) -> None:
        """Count the bytes and pass them on."""
        if self._is_closing or self._inner is None or self._parser is None:
            self._discard(len(data))
            return
        passed_on = self.reading.headed
        try:
            self.reading.feed(self._parser, data)
        except httptools.HttpParserUpgrade:
            pass  # uvicorn continues in HTTP/1.1
        except httptools.HttpParserError:
            self._inner.data_received(data)  # answers 400
            self._close()
            self._lose(None)
            return
        if self.reading.is_too_large:
            detail = f"The head of a request has at most {MAX_HEAD_BYTES} bytes and {MAX_HEADER_LINES} headers."
            self._refuse(431, "head_too_large", detail, is_answerable=passed_on == self.answered, discard=True)
            return
        if self.reading.headed - self.answered > _MAX_UNANSWERED:
            self._transport.abort()  # a response could be taken for that to another request
            return
        if self.reading.chunks > MAX_CHUNKS:
            detail = f"The body of a request has at most {MAX_CHUNKS} chunks."
            self._refuse(413, "too_many_chunks", detail, is_answerable=self._is_unanswered, discard=True)
            return
        self._inner.data_received(data)

    def _discard(self, size: int) -> None:
        self._discarded += size
        if self._discarded > _LINGER_BYTES:
            self._transport.abort()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        if self._parser is not None:
            self._inbound.release(self)
        self._lose(exc)
        self._parser = None

    def look(self, now: float) -> None:
        """Close the connection if its client exceeds a timeout."""
        reading, mark = self.reading, (self.reading.begun, self.reading.phase, self.answered)
        if mark != self._mark or self._is_waiting_for_us or self._is_closing:
            self._mark, self._since = mark, now
            reading.body = 0
            return
        waited_s, limit_s = now - self._since, self._inbound.limits.timeout_s
        if reading.phase is Phase.BODY and waited_s > limit_s + reading.body / _MIN_BYTES_PER_S:
            detail = "The request body did not arrive in time."
            self._refuse(408, "body_timeout", detail, is_answerable=self._is_unanswered)
        elif reading.phase is Phase.HEAD and waited_s > limit_s:
            is_alone = self.answered == reading.headed
            self._refuse(408, "head_timeout", "The request head did not arrive in time.", is_answerable=is_alone)
        elif reading.phase is Phase.BETWEEN and self.answered == reading.headed and waited_s > self._idle_limit_s:
            self._close()

    @property
    def _is_waiting_for_us(self) -> bool:
        """Whether a body does not arrive because the service does not read it: it has received as
        much as it keeps, or has not come to it yet and not begun a response either."""
        if self.reading.phase is not Phase.BODY:
            return False
        is_to_be_read = self.body is not None and not self.body.is_awaited and self._started < self.begun
        return is_to_be_read or not self._transport.is_reading()

    @property
    def _is_unanswered(self) -> bool:
        """Whether the request whose body arrives is the next to be answered, and its response has
        not started."""
        return self._started < self.reading.headed == self.answered + 1

    @property
    def _idle_limit_s(self) -> float:
        """The idle limit: shorter before the first request, and after bytes that belong to no
        request."""
        is_used = self.reading.begun and not self.reading.loose
        return IDLE_S if is_used else self._inbound.limits.timeout_s

    def closing_send(self, number: int, scope: Scope, send: Send, body: CountedBody) -> Send:
        """`send` for a request whose `body` may still be arriving when its response starts."""

        async def closing(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._started = number
                body.decoded()
                if self.reading.completed < number and _leaves_much(scope["headers"]):
                    headers = [*message["headers"], (b"connection", b"close")]
                    message = cast(Message, {**message, "headers": headers})
            await send(message)

        return closing

    def _refuse(self, status: int, code: str, detail: str, *, is_answerable: bool, discard: bool = False) -> None:
        """Close the connection, with a response unless it could be taken for that to another
        request."""
        if is_answerable:
            self._transport.write(_answer(status, code, detail))
        self._close(discard=discard)
        self._lose(None)

    def _lose(self, exc: Exception | None) -> None:
        inner, self._inner = self._inner, None
        if inner is not None:
            inner.connection_lost(exc)

    def _close(self, *, discard: bool = False) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        if self._outbound is not None:
            self._outbound.send_head()
        if (discard or self.reading.phase is Phase.BODY) and not self._transport.is_closing():
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(_LINGER_S, self._transport.close)
        else:
            self._transport.close()


class _ClosedBy:
    """A transport that its connection closes. A head and what follows it in the same step of the
    event loop are one write, which uvicorn makes two: one packet, and one call of the system."""

    __slots__ = ("_head", "_transport", "close", "get_extra_info", "is_closing", "pause_reading", "resume_reading")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None], is_closing: Callable[[], bool]) -> None:
        self._transport, self.close, self.is_closing = transport, close, is_closing
        self._head: bytes | None = None
        self.pause_reading, self.resume_reading = transport.pause_reading, transport.resume_reading
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes) -> None:
        head = self._head
        if head is not None:
            self._head = None
            self._transport.write(head + data)
        elif data.startswith(_HEAD_START):
            self._head = data
            asyncio.get_running_loop().call_soon(self.send_head)
        else:
            self._transport.write(data)

    def send_head(self) -> None:
        """Write a head that nothing has followed yet."""
        head, self._head = self._head, None
        if head is not None and not self._transport.is_closing():
            self._transport.write(head)


def _leaves_much(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the rest of a body is too large to read, or may never arrive."""
    length = b""
    for name, value in headers:
        if name in (b"expect", b"transfer-encoding"):
            return True
        if name == b"content-length":
            length = value
    return int(length or b"0") > _DRAINED_BYTES


async def _answered_stopping(run_id: str | None, send: Send) -> bool:
    """Answer that the process stops; False if the response has started. A client that waited for a
    run learns its id, so that it does not start the run twice."""
    detail = "The service is stopping. Try again."
    if run_id is not None:
        detail = "The service is stopping. The run continues; wait for it by its id."
    body = _problem(503, "service_stopping", detail, **({} if run_id is None else {"run_id": run_id}))
    headers = [
        (b"content-type", b"application/problem+json"),
        (b"content-length", str(len(body)).encode()),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    try:
        await send(cast(Message, {"type": "http.response.start", "status": 503, "headers": headers}))
    except RuntimeError:  # uvicorn accepts one start
        return False
    await send(cast(Message, {"type": "http.response.body", "body": body, "more_body": False}))
    return True


def _problem(status: int, code: str, detail: str, **extra: str) -> bytes:
    title = HTTPStatus(status).phrase
    problem = {"type": f"urn:dragoman:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}
    return msgspec.json.encode({**extra, **problem})


def _answer(status: int, code: str, detail: str) -> bytes:
    body = _problem(status, code, detail)
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body
