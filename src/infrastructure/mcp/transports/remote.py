"""HTTP to remote servers: one client for the process, one endpoint per connection. Below: aiohttp; above: the transports.

aiohttp instead of the SDK's own HTTP client, which costs five times the CPU per call; nothing of one endpoint (headers,
cookies, session) is in the client they share.
"""

import asyncio
import re
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from application.system.event_stream import EventStream, OversizedEvent, StreamEvent
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver
from infrastructure.http.kept_connection import BrokenError, HttpAnswer, KeptConnection, Origin, counted_bytes
from infrastructure.http.kept_http import (
    OWN_HEADERS,
    KeptConnections,
    NotConnectedError,
    head_of,
)
from infrastructure.mcp.faults import (
    BROKEN,
    ENCODED,
    REDIRECTED,
    UNREACHABLE,
    TransportFailedError,
    TransportFault,
    blocked_fault,
    http_status_fault,
    too_large_fault,
)
from infrastructure.mcp.pace import NOISE, Pace
from infrastructure.mcp.transports.kept_heads import KeptHeads

CONNECT_TIMEOUT_S = 10.0
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_KEEP_METHOD = (307, 308)
_UNWELCOME = (401, 403)
_REDIRECTS = (301, 302, 303, *_KEEP_METHOD)
_FIRST_ERROR_STATUS = 400
_PIECE_BYTES = 8 * 1024
"""Of an event stream, that is read at one time."""

T = TypeVar("T")


class RemoteClient:
    """The HTTP client all connections of the process share. Created at first use; close it in the end.

    `egress` says what may be reached; `resolver`, in place of the system's, resolves names before it is asked.
    """

    def __init__(
        self,
        *,
        egress: EgressPolicy,
        ssl_context: ssl.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self._egress = egress
        self._ssl_context = ssl_context
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        self._guard: GuardedResolver | None = None
        self._kept = KeptConnections(
            resolve=self._addresses, context=self._context, connect_timeout_s=CONNECT_TIMEOUT_S
        )

    @property
    def session(self) -> aiohttp.ClientSession:
        """The client; every limit on it is the caller's."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Limits per server are kept above; one here would let slow servers starve the others.
                connector=aiohttp.TCPConnector(
                    limit=0,
                    ssl=self._ssl_context or True,
                    resolver=self._guarded(),
                    socket_factory=self._guarded().open_socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    def request(
        self, method: str, url: URL, headers: Mapping[str, str], body: bytes | None = None
    ) -> "aiohttp.client._RequestContextManager":
        """A request that follows no redirect. Raises TransportFailedError for an address that may not be reached; the
        address of a name is looked at on the way there (`unreachable_fault`)."""
        self._check(url)
        return self.session.request(method, url, headers=headers, data=body, allow_redirects=False)

    def target(self, url: URL) -> tuple[Origin, str]:
        """Where a POST to the URL goes, and what it asks for there. Raises TransportFailedError like `request`."""
        self._check(url)
        host, port = url.raw_host, url.port
        if host is None or port is None:  # which the check refuses
            raise TransportFailedError(UNREACHABLE)
        authority = url.host_port_subcomponent or host
        return Origin(host, port, url.scheme == "https", authority), url.raw_path_qs

    def free_connection(self, origin: Origin) -> KeptConnection | None:
        """A kept connection to an origin that `target` gave, to be asked at once; None if none is free."""
        return self._kept.take(origin)

    async def post(self, origin: Origin, head: bytes, body: bytes, *, limit: int) -> HttpAnswer:
        """A POST over a kept connection to an origin that `target` gave. Raises NotConnectedError, BrokenError."""
        return await self._kept.post(origin, head, body, limit=limit)

    def _check(self, url: URL) -> None:
        try:
            self._egress.check(str(url))
        except EgressBlockedError as blocked:
            raise TransportFailedError(blocked_fault(blocked.advice, blocked.reason)) from blocked

    def _guarded(self) -> GuardedResolver:
        if self._guard is None:
            self._guard = GuardedResolver(self._egress, self._resolver or aiohttp.DefaultResolver())
        return self._guard

    async def _addresses(self, host: str, port: int) -> list[str]:
        if (literal := self._guarded().literal(host)) is not None:
            return [literal]
        return [found["host"] for found in await self._guarded().resolve(host, port, socket.AF_UNSPEC)]

    def _context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return self._ssl_context

    async def close(self) -> None:
        """Closes every socket."""
        await self._kept.close()
        if self._session is not None:
            await self._session.close()
            self._session = None
        if self._guard is not None:
            await self._guard.close()
            self._guard = None


class Credentials(Protocol):
    """Headers that make requests welcome, and that may change between two of them."""

    async def headers(self) -> Mapping[str, str]:
        """Those for the next request. Raises TransportFailedError."""
        ...

    async def renewed(self, sent: Mapping[str, str], status: int, challenges: Iterable[str]) -> bool:
        """Whether there are others after the server refused a request with `sent`. Raises TransportFailedError."""
        ...


class Endpoint:
    """One server's address with the headers that go to it and nowhere else.

    Replies are asked for uncompressed, so that their size on the wire is their size. A redirect is followed only within
    the origin and with its method (307, 308), and remembered. A request that is refused for its credentials was not
    carried out, so it is sent once more with others, if there are any.
    """

    def __init__(
        self,
        client: RemoteClient,
        url: str,
        headers: Mapping[str, str],
        max_response_bytes: int,
        credentials: Credentials | None = None,
    ) -> None:
        self._client = client
        self._credentials = credentials
        self._url = URL(url)
        self._headers = {"accept-encoding": "identity", "user-agent": "dragoman"} | {
            name.lower(): value
            for name, value in headers.items()
            if _HEADER_NAME.fullmatch(name) and name.lower() not in OWN_HEADERS
        }
        self.max_response_bytes = max_response_bytes
        self._in_flight: set[asyncio.Timeout] = set()
        self._asked: set[KeptConnection] = set()
        self._target: tuple[URL, Origin, str] | None = None
        self._heads = KeptHeads(self._headers)

    def abort_requests(self) -> None:
        """Breaks off what is in flight; whoever waits for it gets TransportFailedError."""
        for exchange in self._in_flight:
            exchange.reschedule(0)
        for connection in list(self._asked):
            if connection.user is self._asked:
                connection.abort()

    def at(self, url: str) -> "Endpoint":
        """Another address of the same server, absolute or relative. Raises TransportFailedError if it is elsewhere."""
        target = self._url.join(URL(url))
        if target.origin() != self._url.origin():
            raise TransportFailedError(REDIRECTED)
        other = Endpoint(self._client, str(target), self._headers, self.max_response_bytes, self._credentials)
        other._in_flight, other._asked = self._in_flight, self._asked
        return other

    @asynccontextmanager
    async def request(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Sends a request; the reply's body is yet to be read. Raises TransportFailedError, also in the block."""
        exchange = asyncio.timeout(None)
        try:
            async with exchange:
                self._in_flight.add(exchange)
                redirected = renewed = False
                while True:
                    shown = await self._credentials.headers() if self._credentials is not None else {}
                    async with self._send(method, {**headers, **shown}, body) as response:
                        if response.status in _REDIRECTS and not redirected:
                            self._follow(response)
                            redirected = True
                        elif response.status in _REDIRECTS:
                            raise TransportFailedError(REDIRECTED)
                        elif not renewed and await self._is_welcome_now(
                            shown, response.status, response.headers.getall("www-authenticate", [])
                        ):
                            renewed = True
                        else:
                            yield response
                            return
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as exc:
            raise TransportFailedError(unreachable_fault(exc)) from exc
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise TransportFailedError(BROKEN) from exc
        finally:
            self._in_flight.discard(exchange)

    async def post(
        self, headers: Mapping[str, str], body: bytes, read: Callable[[HttpAnswer], Awaitable[T]]
    ) -> T | None:
        """What `read` makes of the answer to a POST over a kept connection. None if the server wants the request at another
        address, and so did not carry it out: `request` sees to that. Raises TransportFailedError, also in `read`."""
        if self._credentials is None:
            origin, target = self._origin()
            head = self._heads.of(origin, target, headers)
            connection = self._client.free_connection(origin)
            if connection is not None:
                return await self._asked_on(connection, head, body, read)
        exchange = asyncio.timeout(None)
        try:
            async with exchange:
                self._in_flight.add(exchange)
                origin, target = self._origin()
                renewed = False
                while True:
                    shown = await self._credentials.headers() if self._credentials is not None else {}
                    head = head_of(origin, target, {**self._headers, **headers, **shown})
                    answer = await self._client.post(origin, head, body, limit=self.max_response_bytes)
                    try:
                        if answer.status in _REDIRECTS:
                            return None
                        challenges = [answer.headers.get("www-authenticate", "")]
                        if renewed or not await self._is_welcome_now(shown, answer.status, challenges):
                            return await read(answer)
                        renewed = True
                    finally:
                        answer.close()
        except NotConnectedError as exc:
            blocked = exc.__cause__
            fault = UNREACHABLE
            if isinstance(blocked, EgressBlockedError):
                fault = blocked_fault(blocked.advice, blocked.reason)
            raise TransportFailedError(fault) from exc
        except (BrokenError, TimeoutError) as exc:
            raise TransportFailedError(BROKEN) from exc
        finally:
            self._in_flight.discard(exchange)

    async def _asked_on(
        self, connection: KeptConnection, head: bytes, body: bytes, read: Callable[[HttpAnswer], Awaitable[T]]
    ) -> T | None:
        """`post` as it mostly is: there is a connection, and no credentials that may change."""
        self._asked.add(connection)
        connection.user = self._asked
        try:
            answer = await connection.ask(head, body, self.max_response_bytes)
            try:
                return None if answer.status in _REDIRECTS else await read(answer)
            finally:
                answer.close()
        except (BrokenError, TimeoutError) as exc:
            raise TransportFailedError(BROKEN) from exc
        finally:
            self._asked.discard(connection)

    def _origin(self) -> tuple[Origin, str]:
        """Looked at once for each address, as what is allowed does not change."""
        if self._target is None or self._target[0] is not self._url:
            self._target = (self._url, *self._client.target(self._url))
        return self._target[1:]

    async def _is_welcome_now(self, shown: Mapping[str, str], status: int, challenges: Sequence[str]) -> bool:
        """Whether a refused request would be taken if it were sent again."""
        if self._credentials is None or status not in _UNWELCOME:
            return False
        return await self._credentials.renewed(shown, status, challenges)

    def _send(
        self, method: str, headers: Mapping[str, str], body: bytes | None
    ) -> "aiohttp.client._RequestContextManager":
        return self._client.request(method, self._url, self._headers | dict(headers), body)

    def _follow(self, response: aiohttp.ClientResponse) -> None:
        location = response.headers.get("location", "")
        target = self._url.join(URL(location))
        if (
            response.status not in _KEEP_METHOD
            or target.origin() != self._url.origin()
            or target.user != self._url.user
        ):
            raise TransportFailedError(REDIRECTED)
        self._url = target

    async def read_body(self, response: aiohttp.ClientResponse) -> bytes:
        """The whole body. Raises TransportFailedError when it is over the limit (counted to its end, if that comes soon), or
        compressed."""
        _refuse_encoding(response.headers)
        limit, announced = self.max_response_bytes, response.content_length
        if announced is not None:
            if announced > limit:
                raise TransportFailedError(too_large_fault(announced, limit))
            return await response.read()
        chunks, size = [], 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size <= limit:
                chunks.append(chunk)
            else:
                chunks.clear()
                if size > counted_bytes(limit):
                    break
        if size > limit:
            raise TransportFailedError(too_large_fault(size, limit))
        return b"".join(chunks)

    async def read_events(
        self, response: aiohttp.ClientResponse | HttpAnswer, pace: Pace
    ) -> AsyncIterator[StreamEvent | OversizedEvent]:
        """The events of an event stream, to its end. Comments cost `pace`. Raises TransportFailedError when it breaks, or for
        an event without end."""
        _refuse_encoding(response.headers)
        limit = self.max_response_bytes
        stream = EventStream(limit)
        chunks = response.chunks() if isinstance(response, HttpAnswer) else response.content.iter_any()
        async for chunk in chunks:
            for start in range(0, len(chunk), _PIECE_BYTES):
                for event in stream.feed(chunk[start : start + _PIECE_BYTES]):
                    yield event
                if skipped := stream.take_skipped():
                    pace.spend(NOISE * skipped)
                    await pace.wait()
            if stream.unfinished_bytes > counted_bytes(limit):
                raise TransportFailedError(too_large_fault(stream.unfinished_bytes, limit))

    def body_of(self, answer: HttpAnswer) -> bytes:
        """The whole body of an answer over a kept connection. Raises TransportFailedError as `read_body` does."""
        _refuse_encoding(answer.headers)
        if answer.size > self.max_response_bytes:
            raise TransportFailedError(too_large_fault(answer.size, self.max_response_bytes))
        return answer.body or b""


def unreachable_fault(error: Exception) -> TransportFault:
    """Why there is no connection: nobody answers, or none of the addresses of a name may be reached."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
    return blocked_fault(inner.advice, inner.reason) if isinstance(inner, EgressBlockedError) else UNREACHABLE


def _refuse_encoding(headers: Mapping[str, str]) -> None:
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise TransportFailedError(ENCODED)


def content_type_of(response: aiohttp.ClientResponse | HttpAnswer) -> str:
    """The media type in lower case, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def status_fault(response: aiohttp.ClientResponse | HttpAnswer) -> TransportFault | None:
    """What an error status means; None for a success."""
    return http_status_fault(response.status) if response.status >= _FIRST_ERROR_STATUS else None
