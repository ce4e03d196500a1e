"""HTTP requests to model providers over aiohttp: pooled connections, no redirects, no cookies.
Above: `ModelExchange`. Below: the sessions, with proxies and egress guard."""

from collections.abc import Mapping
from functools import lru_cache

import aiohttp
from yarl import URL

from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.sessions import OutboundSessions

KEEPALIVE_S = 50.0
"""Below the minute after which load balancers of large providers close idle connections."""
CONNECT_TIMEOUT_S = 10.0


def provider_http(clients: HttpClients, *, egress: EgressPolicy | None = None) -> "AiohttpProviders":
    """With `egress`, only permitted addresses are connected to."""
    return AiohttpProviders(clients.sessions(egress=egress, keepalive_s=KEEPALIVE_S))


class AiohttpProviders:
    def __init__(self, sessions: OutboundSessions) -> None:
        self._sessions = sessions

    def to(self, url: str | URL, headers: Mapping[str, str]) -> "AiohttpAddress":
        return AiohttpAddress(self._sessions, url, headers)

    async def aclose(self) -> None:
        await self._sessions.close()


class AiohttpAddress:
    """One address, and the headers of every request to it."""

    def __init__(self, sessions: OutboundSessions, url: str | URL, headers: Mapping[str, str]) -> None:
        self._sessions = sessions
        self._url = URL(url)
        self._headers = dict(headers)  # contains the key

    async def send(
        self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None
    ) -> "AiohttpAnswer":
        """Cancellation closes the connection."""
        session = await self._session()
        timeout = _timeout(silence_s, total_s)
        response = await session.post(
            self._url, data=body, headers=self._headers, allow_redirects=False, timeout=timeout
        )
        return AiohttpAnswer(response)

    async def get(self, *, total_s: float) -> "AiohttpAnswer":
        session = await self._session()
        timeout = _timeout(None, total_s)
        return AiohttpAnswer(
            await session.get(self._url, headers=self._headers, allow_redirects=False, timeout=timeout)
        )

    async def _session(self) -> aiohttp.ClientSession:
        return await self._sessions.to(self._url.scheme, self._url.raw_host or "", self._url.port)


@lru_cache(maxsize=16)
def _timeout(silence_s: float | None, total_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=CONNECT_TIMEOUT_S, sock_read=silence_s)


class AiohttpAnswer:
    """A response whose body is decompressed while it is read."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    @property
    def is_complete(self) -> bool:
        return self._response.content.at_eof()

    async def read(self) -> bytes:
        return await self._response.content.readany()

    def close(self) -> None:
        self._response.close()
