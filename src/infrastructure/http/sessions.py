"""aiohttp sessions for outbound requests: direct under the egress guard, or through the operator's
proxy. Above: model adapters, MCP transports, and the httpx clients (client.py)."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator

import aiohttp
from aiohttp.abc import AbstractResolver

from application.system.lru import LruCache
from infrastructure.http.egress import EgressBlockedError, EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver
from infrastructure.http.proxies import DIRECT, Proxies

ENCODINGS = "gzip, deflate"
"""Accepted encodings. Sessions decompress in bounded steps; the caller bounds the total."""
PROXY_ERRORS = (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)
"""The proxy is unreachable, or rejects a tunnel."""
_DECODED = frozenset({"identity", "gzip", "deflate"})
_LOOKUP_S = 2.0
_LOOKUP_VALID_S = 60.0
_MAX_LOOKUPS = 1_000


class OutboundSessions:
    """The sessions of one purpose, without cookies and environment. Close them at the end.

    - Without a proxy, `egress` checks the address of each connection.
    - Through a proxy, the proxy's address is exempt, and `egress` checks the addresses of the
      target's name that resolve here. The caller checks the URL (`EgressPolicy.check`).
    - `resolver` replaces the system's for target names; `ssl_context` True is aiohttp's own.
    """

    def __init__(
        self,
        *,
        ssl_context: Callable[[], ssl.SSLContext | bool],
        egress: EgressPolicy | None = None,
        proxies: Proxies = DIRECT,
        resolver: AbstractResolver | None = None,
        max_connections: int = 0,
        keepalive_s: float,
        timeout: aiohttp.ClientTimeout | None = None,
    ) -> None:
        self._ssl_context = ssl_context
        self._egress = egress
        self._proxies = proxies
        self._resolver = resolver
        self._max_connections = max_connections
        self._keepalive_s = keepalive_s
        self._timeout = timeout
        self._opened: dict[str | None, aiohttp.ClientSession] = {}
        self._guard: GuardedResolver | None = None
        self._permitted: LruCache[str, float] = LruCache(_MAX_LOOKUPS)
        """Names of targets behind a proxy, and the expiry of their check."""

    async def to(self, scheme: str, host: str, port: int | None) -> aiohttp.ClientSession:
        """The session for requests to a target. Raises EgressBlockedError."""
        proxy = None
        if self._proxies.is_configured:
            proxy = self._proxies.of(scheme, host, port)
            if proxy is not None and self._egress is not None:
                await self._check_name(self._egress, host)
        return self._opened.get(proxy) or self._open(proxy)

    async def close(self) -> None:
        opened, self._opened = self._opened, {}
        for session in opened.values():
            await session.close()
        guard, self._guard = self._guard, None
        if guard is not None:
            await guard.close()

    def _open(self, proxy: str | None) -> aiohttp.ClientSession:
        guard = self._guarded() if proxy is None else None
        connector = aiohttp.TCPConnector(
            ssl=self._ssl_context(),
            limit=self._max_connections,
            keepalive_timeout=self._keepalive_s,
            resolver=guard or (self._resolver if proxy is None else None),
            socket_factory=None if guard is None else guard.open_socket,
        )
        session = self._opened[proxy] = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy,
            timeout=self._timeout or aiohttp.ClientTimeout(),
            trust_env=False,
        )
        return session

    def _guarded(self) -> GuardedResolver | None:
        if self._guard is None and self._egress is not None:
            self._guard = GuardedResolver(self._egress, self._resolver or aiohttp.DefaultResolver())
        return self._guard

    async def _check_name(self, egress: EgressPolicy, host: str) -> None:
        """Check all addresses of a name: the proxy may connect to any of them."""
        now = asyncio.get_running_loop().time()
        if (self._permitted.get(host) or 0.0) > now:
            return
        resolver = self._resolver or aiohttp.DefaultResolver()
        try:
            async with asyncio.timeout(_LOOKUP_S):
                found = await resolver.resolve(host, 0, socket.AF_UNSPEC)
        except (OSError, TimeoutError):
            found = []  # the proxy may resolve the name
        finally:
            if resolver is not self._resolver:
                await resolver.close()
        for result in found:
            egress.check_address(host, ipaddress.ip_address(result["host"].partition("%")[0]))
        self._permitted.put(host, now + _LOOKUP_VALID_S)


def is_decoded(content_encoding: str) -> bool:
    """Whether sessions decompress this Content-Encoding."""
    return content_encoding.strip().lower() in _DECODED


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """The error and its causes, with aiohttp's `os_error`."""
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        cause = left.pop()
        if cause is not None and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            inner = getattr(cause, "os_error", None)
            left += [cause.__cause__, cause.__context__, inner if isinstance(inner, BaseException) else None]


def refusal_in(error: BaseException) -> EgressBlockedError | None:
    """The refusal of the egress guard among the causes, if any."""
    return next((cause for cause in causes_of(error) if isinstance(cause, EgressBlockedError)), None)
