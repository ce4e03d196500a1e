"""HTTP to remote servers: one client for the process, one endpoint per connection. Below: aiohttp; above: the transports.

aiohttp instead of the SDK's own HTTP client, which costs five times the CPU per call; nothing of one endpoint (headers,
cookies, session) is in the client they share.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

from infrastructure.mcp.event_stream import EventStream, StreamEvent
from infrastructure.mcp.faults import (
    BROKEN,
    ENCODED,
    REDIRECTED,
    UNREACHABLE,
    TransportFailedError,
    TransportFault,
    http_status_fault,
    too_large_fault,
)
from infrastructure.mcp.stdio_framing import OversizedLine

CONNECT_TIMEOUT_S = 10.0
_KEEP_METHOD = (307, 308)
_REDIRECTS = (301, 302, 303, *_KEEP_METHOD)
_FIRST_ERROR_STATUS = 400


class RemoteClient:
    """The HTTP client all connections of the process share. Created at first use; close it in the end."""

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None, resolver: AbstractResolver | None = None) -> None:
        self._ssl_context = ssl_context
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The client; every limit on it is the caller's."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Limits per server are kept above; one here would let slow servers starve the others.
                connector=aiohttp.TCPConnector(limit=0, ssl=self._ssl_context or True, resolver=self._resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Closes every socket."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class Endpoint:
    """One server's address with the headers that go to it and nowhere else.

    Replies are asked for uncompressed, so that their size on the wire is their size. A redirect is followed only within
    the origin and with its method (307, 308), and remembered.
    """

    def __init__(self, client: RemoteClient, url: str, headers: Mapping[str, str], max_response_bytes: int) -> None:
        self._client = client
        self._url = URL(url)
        self._headers = {"accept-encoding": "identity", "user-agent": "dragoman"} | {
            name.lower(): value for name, value in headers.items()
        }
        self.max_response_bytes = max_response_bytes
        self._in_flight: set[asyncio.Timeout] = set()

    def abort_requests(self) -> None:
        """Breaks off what is in flight; whoever waits for it gets TransportFailedError."""
        for exchange in self._in_flight:
            exchange.reschedule(0)

    def at(self, url: str) -> "Endpoint":
        """Another address of the same server, absolute or relative. Raises TransportFailedError if it is elsewhere."""
        target = self._url.join(URL(url))
        if target.origin() != self._url.origin():
            raise TransportFailedError(REDIRECTED)
        other = Endpoint(self._client, str(target), self._headers, self.max_response_bytes)
        other._in_flight = self._in_flight
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
                async with self._send(method, headers, body) as response:
                    if response.status not in _REDIRECTS:
                        yield response
                        return
                    self._follow(response)
                async with self._send(method, headers, body) as response:
                    if response.status in _REDIRECTS:
                        raise TransportFailedError(REDIRECTED)
                    yield response
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL) as exc:
            raise TransportFailedError(UNREACHABLE) from exc
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise TransportFailedError(BROKEN) from exc
        finally:
            self._in_flight.discard(exchange)

    def _send(
        self, method: str, headers: Mapping[str, str], body: bytes | None
    ) -> "aiohttp.client._RequestContextManager":
        return self._client.session.request(
            method, self._url, headers=self._headers | dict(headers), data=body, allow_redirects=False
        )

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
        """The whole body. Raises TransportFailedError when it is over the limit (counted to its end), or compressed."""
        _refuse_encoding(response)
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
        if size > limit:
            raise TransportFailedError(too_large_fault(size, limit))
        return b"".join(chunks)

    async def read_events(self, response: aiohttp.ClientResponse) -> AsyncIterator[StreamEvent | OversizedLine]:
        """The events of an event stream, to its end. Raises TransportFailedError when it breaks."""
        _refuse_encoding(response)
        stream = EventStream(self.max_response_bytes)
        async for chunk in response.content.iter_any():
            for event in stream.feed(chunk):
                yield event


def _refuse_encoding(response: aiohttp.ClientResponse) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise TransportFailedError(ENCODED)


def content_type_of(response: aiohttp.ClientResponse) -> str:
    """The media type in lower case, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def status_fault(response: aiohttp.ClientResponse) -> TransportFault | None:
    """What an error status means; None for a success."""
    return http_status_fault(response.status) if response.status >= _FIRST_ERROR_STATUS else None
