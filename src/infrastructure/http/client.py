"""httpx clients on aiohttp's transport, which costs a quarter of the CPU of httpx's own. The only file that knows httpx-aiohttp.

Below: the aiohttp sessions, which calls of models and MCP servers use directly. Above: native tools, webhooks, workflows.
"""

import ssl
from collections.abc import AsyncIterator
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver
from httpx_aiohttp import AiohttpTransport

from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import DIRECT, Proxies
from infrastructure.http.sessions import OutboundSessions


class HttpClients:
    """Makes HTTP clients: one per purpose, all over one SSL context (loading the CA bundle costs ~30 ms of CPU).

    Clients follow no redirects, keep no cookies (they would carry one organization's session into another's request)
    and read no environment. The caller closes them.
    """

    def __init__(self, proxies: Proxies = DIRECT) -> None:
        self._proxies = proxies

    def create(
        self,
        *,
        connect_timeout_s: float = 10.0,
        pool_timeout_s: float = 30.0,
        read_timeout_s: float = 60.0,
        max_connections: int = 1000,
        keepalive_s: float = 60.0,
        resolver: AbstractResolver | None = None,
        egress: EgressPolicy | None = None,
    ) -> httpx.AsyncClient:
        """A client. `pool_timeout_s` bounds waiting for a connection and making it (TLS included), `read_timeout_s`
        each wait for bytes. `resolver` replaces the system's. With `egress`, only permitted addresses are connected to."""
        sessions = self.sessions(
            egress=egress, resolver=resolver, max_connections=max_connections, keepalive_s=keepalive_s
        )
        return httpx.AsyncClient(
            transport=_Transport(sessions, self._ssl_context),
            cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=False,
            trust_env=False,
            timeout=httpx.Timeout(
                connect=connect_timeout_s, read=read_timeout_s, write=read_timeout_s, pool=pool_timeout_s
            ),
        )

    def sessions(
        self,
        *,
        egress: EgressPolicy | None = None,
        resolver: AbstractResolver | None = None,
        max_connections: int = 0,
        keepalive_s: float,
    ) -> OutboundSessions:
        """aiohttp's own sessions, for what is called all the time."""
        return OutboundSessions(
            ssl_context=lambda: self._ssl_context,
            egress=egress,
            proxies=self._proxies,
            resolver=resolver,
            max_connections=max_connections,
            keepalive_s=keepalive_s,
        )

    @cached_property
    def _ssl_context(self) -> ssl.SSLContext:
        return httpx.create_ssl_context(trust_env=False)


class _Transport(httpx.AsyncBaseTransport):
    """Says in httpx's words what went wrong, so that callers need to know httpx alone.

    httpx-aiohttp lets some errors through (an answer that is not HTTP), and calls every lost or refused connection a
    ConnectTimeout. aiohttp's own error stays the cause, for what is behind it (a certificate, the egress guard).
    """

    def __init__(self, sessions: OutboundSessions, ssl_context: ssl.SSLContext) -> None:
        self._sessions = sessions
        self._ssl_context = ssl_context
        self._transports: dict[aiohttp.ClientSession, AiohttpTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As httpx says. ConnectTimeout is only what took too long. Raises EgressBlockedError for a name behind a proxy."""
        session = await self._sessions.to(request.url.scheme, request.url.host, request.url.port)
        transport = self._transports.get(session)
        if transport is None:
            transport = self._transports[session] = AiohttpTransport(verify=self._ssl_context, client=session)
        try:
            response = await transport.handle_async_request(request)
        except httpx.ConnectTimeout as exc:
            raise _in_httpx_words(exc) from exc.__cause__
        except aiohttp.InvalidURL as exc:
            raise httpx.UnsupportedProtocol("the URL cannot be requested", request=request) from exc
        except aiohttp.ClientError as exc:
            raise httpx.RemoteProtocolError("the server's answer is not HTTP", request=request) from exc
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Body(response.stream)
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        self._transports.clear()
        await self._sessions.close()


class _Body(httpx.AsyncByteStream):
    """An answer's body, with the transport's words for how it may end."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx.ConnectTimeout as exc:
            raise _in_httpx_words(exc) from exc.__cause__

    async def aclose(self) -> None:
        """Close the connection, or give it back."""
        await self._stream.aclose()


def _in_httpx_words(error: httpx.ConnectTimeout) -> httpx.TransportError:
    """What httpx-aiohttp's ConnectTimeout stands for."""
    match error.__cause__:
        case TimeoutError():
            return error
        case aiohttp.ClientConnectorError():
            return httpx.ConnectError(str(error))
        case aiohttp.ServerDisconnectedError():
            return httpx.RemoteProtocolError(str(error))
        case _:
            return httpx.ReadError(str(error))
