"""httpx clients on aiohttp's transport, at a quarter of the CPU of httpx's own. The only file that
imports httpx-aiohttp. Above: native tools, webhooks, workflows. Below: the aiohttp sessions, which
models and MCP servers use directly."""

import ssl
from collections.abc import AsyncIterator
from functools import cached_property
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver
from httpx_aiohttp import AiohttpTransport

from infrastructure.http.egress import EgressPolicy
from infrastructure.http.proxies import DIRECT, Proxies
from infrastructure.http.sessions import OutboundSessions


class HttpClients:
    """Creates HTTP clients over one SSL context (loading the CA bundle takes ~30 ms of CPU). They
    follow no redirects, read no environment, and store no cookies, which would leak sessions
    between organizations. The caller closes them."""

    def __init__(self, proxies: Proxies = DIRECT, *, ca_file: Path | None = None) -> None:
        """`ca_file` has certificates that are trusted instead of the public ones."""
        self._proxies = proxies
        self._ca_file = ca_file

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
        """`pool_timeout_s` bounds the wait for a connection, with connecting and TLS;
        `read_timeout_s` each wait for bytes. `resolver` replaces the system's. With `egress`, only
        permitted addresses are connected to."""
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
        """aiohttp sessions for hot paths."""
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
        if self._ca_file is not None:
            return ssl.create_default_context(cafile=str(self._ca_file))
        return httpx.create_ssl_context(trust_env=False)


class _Transport(httpx.AsyncBaseTransport):
    """Translates errors to httpx errors. httpx-aiohttp passes some errors through (invalid HTTP),
    and reports every failed connection as ConnectTimeout. aiohttp's error stays the cause (a
    certificate, the egress guard)."""

    def __init__(self, sessions: OutboundSessions, ssl_context: ssl.SSLContext) -> None:
        self._sessions = sessions
        self._ssl_context = ssl_context
        self._transports: dict[aiohttp.ClientSession, AiohttpTransport] = {}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """ConnectTimeout is raised for timeouts only. Raises EgressBlockedError for a name behind a
        proxy."""
        session = await self._sessions.to(request.url.scheme, request.url.host, request.url.port)
        transport = self._transports.get(session)
        if transport is None:
            transport = self._transports[session] = AiohttpTransport(verify=self._ssl_context, client=session)
        try:
            response = await transport.handle_async_request(request)
        except httpx.ConnectTimeout as exc:
            raise _translated(exc) from exc.__cause__
        except aiohttp.InvalidURL as exc:
            raise httpx.UnsupportedProtocol("the URL cannot be requested", request=request) from exc
        except aiohttp.ClientError as exc:
            raise httpx.RemoteProtocolError("the server's answer is not HTTP", request=request) from exc
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _Body(response.stream)
        return response

    async def aclose(self) -> None:
        self._transports.clear()
        await self._sessions.close()


class _Body(httpx.AsyncByteStream):
    """A response body with translated errors."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                yield chunk
        except httpx.ConnectTimeout as exc:
            raise _translated(exc) from exc.__cause__

    async def aclose(self) -> None:
        await self._stream.aclose()


def _translated(error: httpx.ConnectTimeout) -> httpx.TransportError:
    """The httpx error for httpx-aiohttp's ConnectTimeout."""
    match error.__cause__:
        case TimeoutError():
            return error
        case aiohttp.ClientConnectorError():
            return httpx.ConnectError(str(error))
        case aiohttp.ServerDisconnectedError():
            return httpx.RemoteProtocolError(str(error))
        case _:
            return httpx.ReadError(str(error))
