"""HTTP to remote servers: one client per process, one endpoint per connection. Above: the
transports. Below: aiohttp, at a fifth of the CPU of the SDK's client. The shared client has no
headers, cookies or sessions of endpoints."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Protocol

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from application.system.event_stream import EventStream, OversizedEvent, StreamEvent
from application.system.unreachable import cause_of, is_tls_alert
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.proxies import DIRECT, Proxies
from infrastructure.http.sessions import ENCODINGS, PROXY_ERRORS, OutboundSessions, causes_of, is_decoded, refusal_in
from infrastructure.mcp.faults import (
    BROKEN,
    ENCODED,
    PROXY_FAILED,
    REDIRECTED,
    TransportFailedError,
    TransportFault,
    blocked_fault,
    counted_bytes,
    http_status_fault,
    not_reached,
    too_large_fault,
)
from infrastructure.mcp.pace import DROPPED, MESSAGE, NOISE, Pace
from infrastructure.mcp.transports.server_contexts import ClientTls
from infrastructure.mcp.transports.stdio_framing import MAX_UNASKED_BYTES, limit_of

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 4.0
"""Idle time of pooled connections, below the 5 s of Node.js and uvicorn: a call on a connection
that its server closes has an unknown outcome."""
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "proxy-authorization"})
"""Headers of the client, which servers' configurations cannot set on shared connections."""
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KEEP_METHOD = (307, 308)
_REJECTED = (401, 403)
_REDIRECTS = (301, 302, 303, *_KEEP_METHOD)
_FIRST_ERROR_STATUS = 400
_PIECE_BYTES = 8 * 1024
"""Bytes of an event stream read at a time."""
_NOT_SENT = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.InvalidURL,
)
"""Errors before the first byte of a request: of names, connections, TLS, and rejected proxy
tunnels."""


class RemoteClient:
    """The HTTP client shared by all connections of the process. Close it at the end. `egress`
    decides about addresses; `resolver` replaces the system's."""

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        proxies: Proxies = DIRECT,
        ssl_context: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._egress = egress
        self._sessions = OutboundSessions(
            ssl_context=lambda: ssl_context or True,
            egress=egress,
            proxies=proxies,
            resolver=resolver,
            # Limits per server are applied above; a limit here would let slow servers starve
            # others.
            max_connections=0,
            keepalive_s=KEEPALIVE_S,
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT_S),
        )

    def check(self, url: URL) -> None:
        """Check a URL; addresses of its name are checked when connecting (`unreachable_fault`).
        Raises TransportFailedError."""
        try:
            self._egress.check(str(url))
        except EgressBlockedError as blocked:
            raise TransportFailedError(blocked_fault(blocked.advice, blocked.reason)) from blocked

    async def send(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        body: bytes | None,
        context: ssl.SSLContext | None = None,
    ) -> aiohttp.ClientResponse:
        """The response for a checked URL, without redirects. Connections with a `context` are
        pooled for it alone. Raises aiohttp.ClientError, EgressBlockedError."""
        session = await self._sessions.to(url.scheme, url.raw_host or "", url.port)
        return await session.request(
            method, url, headers=headers, data=body, allow_redirects=False, ssl=True if context is None else context
        )

    async def close(self) -> None:
        await self._sessions.close()


class Credentials(Protocol):
    """Authorization headers, which may change between requests."""

    async def headers(self) -> Mapping[str, str]:
        """The headers for the next request. Raises TransportFailedError."""
        ...

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool:
        """Whether new headers exist after the server rejected `sent`. Raises
        TransportFailedError."""
        ...


class Exchange:
    """A request in progress. Entering sends it and returns the response with an unread body.

    - Leaving before the end of the body closes the connection.
    - Raises TransportFailedError on entering and in the block, also when another task aborts it.
    """

    __slots__ = ("_aborted", "_cancels", "_in_flight", "_response", "_send", "_task")

    def __init__(self, in_flight: "set[Exchange]", send: Callable[[], Awaitable[aiohttp.ClientResponse]]) -> None:
        self._in_flight = in_flight
        self._send = send
        self._response: aiohttp.ClientResponse | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancels = 0
        self._aborted = False

    def abort(self) -> None:
        """Cancel the exchange, as `asyncio.timeout` does, but without a timer: each call passes
        here."""
        if self._task is not None and not self._aborted:
            self._aborted = True
            self._task.cancel()

    async def __aenter__(self) -> aiohttp.ClientResponse:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancels = task, task.cancelling()
        self._in_flight.add(self)
        try:
            self._response = await self._send()
        except BaseException as exc:
            self._end(exc)
            raise
        return self._response

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(exc)

    def _end(self, exc: BaseException | None) -> None:
        self._in_flight.discard(self)
        if self._response is not None:
            self._response.close()
        if self._aborted and self._task is not None:
            cancels = self._task.uncancel()
            if isinstance(exc, asyncio.CancelledError) and cancels <= self._cancels:
                raise TransportFailedError(BROKEN) from exc
        if exc is not None and (fault := _fault_of(exc)) is not None:
            raise TransportFailedError(fault) from exc


def sendable(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a server's configuration may set, with names in lower case."""
    return {
        name.lower(): value
        for name, value in headers.items()
        if _HEADER_NAME.fullmatch(name) and name.lower() not in _OWN_HEADERS
    }


class Endpoint:
    """One server's address, with the headers sent only to it.

    - A redirect is followed only within the origin and with its method (307, 308), and remembered.
    - A request rejected for its credentials was not executed, and is sent once more with new ones,
      if any.
    - Replies may be compressed; limits apply to the decompressed size.
    - `tls` is shown and trusted at this origin.
    """

    def __init__(
        self,
        client: RemoteClient,
        url: str,
        headers: Mapping[str, str],
        max_response_bytes: int,
        credentials: Credentials | None = None,
        *,
        tls: ClientTls | None = None,
    ) -> None:
        self._client = client
        self._tls = tls
        self._credentials = credentials
        self._url = URL(url)
        self._checked: URL | None = None
        self._headers = {"accept-encoding": ENCODINGS, "user-agent": "dragoman"} | sendable(headers)
        self.max_response_bytes = max_response_bytes
        self._in_flight: set[Exchange] = set()

    def abort_requests(self) -> None:
        """Abort the requests in progress; their callers receive TransportFailedError."""
        for exchange in self._in_flight:
            exchange.abort()

    def at(self, url: str) -> "Endpoint":
        """Another address of the same server, absolute or relative. Raises TransportFailedError for
        another origin."""
        target = self._url.join(URL(url))
        if target.origin() != self._url.origin():
            raise TransportFailedError(REDIRECTED)
        other = Endpoint(
            self._client, str(target), self._headers, self.max_response_bytes, self._credentials, tls=self._tls
        )
        other._in_flight = self._in_flight
        return other

    def request(self, method: str, headers: Mapping[str, str], body: bytes | None = None) -> "Exchange":
        return Exchange(self._in_flight, lambda: self._answer(method, headers, body))

    async def _answer(self, method: str, headers: Mapping[str, str], body: bytes | None) -> aiohttp.ClientResponse:
        """The response after at most one redirect and one renewal of credentials."""
        redirected = renewed = False
        while True:
            if self._checked is not self._url:  # the policy does not change
                self._client.check(self._url)
                self._checked = self._url
            shown = await self._credentials.headers() if self._credentials is not None else {}
            context = None if self._tls is None else self._tls.context
            response = await self._client.send(method, self._url, {**self._headers, **headers, **shown}, body, context)
            if response.status not in _REDIRECTS and response.status not in _REJECTED:
                return response
            try:
                if response.status in _REDIRECTS:
                    self._follow(response, redirected)
                    redirected = True
                elif not renewed and await self._is_accepted_now(
                    shown, response.status, response.headers.getall("www-authenticate", [])
                ):
                    renewed = True
                else:
                    return response
            except BaseException:
                response.close()
                raise
            response.release()

    async def _is_accepted_now(self, shown: Mapping[str, str], status: int, challenges: Sequence[str]) -> bool:
        """Whether a rejected request would be accepted now."""
        if self._credentials is None or status not in _REJECTED:
            return False
        return await self._credentials.renewed(shown, status, challenges)

    def _follow(self, response: aiohttp.ClientResponse, redirected: bool) -> None:
        location = response.headers.get("location", "")
        target = self._url.join(URL(location))
        if (
            redirected
            or response.status not in _KEEP_METHOD
            or target.origin() != self._url.origin()
            or target.user != self._url.user
        ):
            raise TransportFailedError(REDIRECTED)
        self._url = target

    async def read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body. Raises TransportFailedError if it is over the limit; the excess is
        counted, up to a bound, but not decompressed."""
        is_compressed = _is_compressed(response)
        limit, announced = self.max_response_bytes, response.content_length
        if announced is not None and announced > limit:
            raise TransportFailedError(too_large_fault(announced, limit))
        if announced is not None and not is_compressed:
            return await response.read()
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size <= limit:
                chunks.append(chunk)
            else:
                chunks.clear()
                if is_compressed or size > counted_bytes(limit):
                    break
        if size > limit:
            raise TransportFailedError(too_large_fault(size, limit, is_all=not is_compressed))
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def read_events(
        self, response: aiohttp.ClientResponse, pace: Pace, *, max_bytes: int | None = None
    ) -> AsyncIterator[StreamEvent | OversizedEvent]:
        """The events of a stream, to its end, each within `max_bytes`; without, within the limit of
        what it is. Events, which may hold no message, comments and bytes that are discarded are
        charged to `pace`. Raises TransportFailedError for a broken stream or an endless event."""
        _is_compressed(response)
        limit = min(self.max_response_bytes, max_bytes or self.max_response_bytes)
        stream = EventStream(min(limit, MAX_UNASKED_BYTES), limit_of=partial(limit_of, max_bytes=limit))
        async for chunk in response.content.iter_any():
            for start in range(0, len(chunk), _PIECE_BYTES):
                events = stream.feed(chunk[start : start + _PIECE_BYTES])
                for event in events:
                    if isinstance(event, OversizedEvent):
                        pace.spend(MESSAGE)
                    yield event
                taken, discarded = len(events) + stream.take_skipped(), stream.take_discarded()
                if taken or discarded:
                    pace.spend(NOISE * taken, discarded // DROPPED)
                    await pace.wait()
            if stream.unfinished_bytes > counted_bytes(limit):
                raise TransportFailedError(too_large_fault(stream.unfinished_bytes, limit))


def _fault_of(exc: BaseException) -> TransportFault | None:
    """The fault for an error of the client or the guard; None for others."""
    if isinstance(exc, EgressBlockedError):
        return blocked_fault(exc.advice, exc.reason)
    if isinstance(exc, _NOT_SENT):
        return unreachable_fault(exc)
    if isinstance(exc, aiohttp.ClientError) and any(map(is_tls_alert, causes_of(exc))):
        return not_reached(cause_of(exc))  # by TLS 1.3, a client certificate is refused after the handshake
    return BROKEN if isinstance(exc, aiohttp.ClientError | TimeoutError) else None


def unreachable_fault(error: Exception) -> TransportFault:
    """The reason for a missing connection: no answer, or a forbidden address."""
    if (blocked := refusal_in(error)) is not None:
        return blocked_fault(blocked.advice, blocked.reason)
    return PROXY_FAILED if isinstance(error, PROXY_ERRORS) else not_reached(cause_of(error))


def _is_compressed(response: aiohttp.ClientResponse) -> bool:
    """Whether the body was compressed. Raises TransportFailedError if it still is."""
    encoding = response.headers.get("content-encoding", "identity")
    if not is_decoded(encoding):
        raise TransportFailedError(ENCODED)
    return encoding.lower() != "identity"


def content_type_of(response: aiohttp.ClientResponse) -> str:
    """The media type in lower case, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def status_fault(response: aiohttp.ClientResponse) -> TransportFault | None:
    """The fault of an error status; None for success."""
    return http_status_fault(response.status) if response.status >= _FIRST_ERROR_STATUS else None
