"""Requests to model providers over aiohttp's client: pooled connections, no redirects, no cookies.

Below: the sessions, with proxies and egress guard. Above: `ModelExchange`, which bounds what is read.
"""

from collections.abc import Mapping
from functools import lru_cache

import aiohttp
from yarl import URL

from infrastructure.http.client import HttpClients
from infrastructure.http.egress import EgressPolicy
from infrastructure.http.sessions import OutboundSessions

KEEPALIVE_S = 50.0
"""Less than the minute after which the balancers before the large providers close an unused connection."""
CONNECT_TIMEOUT_S = 10.0


def provider_http(clients: HttpClients, *, egress: EgressPolicy | None = None) -> "AiohttpProviders":
    """HTTP to providers. With `egress`, only permitted addresses are connected to."""
    return AiohttpProviders(clients.sessions(egress=egress, keepalive_s=KEEPALIVE_S))


class AiohttpProviders:
    """The `ProviderHttp` of `ModelExchange`. Closes the sessions."""

    def __init__(self, sessions: OutboundSessions) -> None:
        self._sessions = sessions

    def to(self, url: str, headers: Mapping[str, str]) -> "AiohttpAddress":
        """An address and the headers of each request to it."""
        return AiohttpAddress(self._sessions, url, headers)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._sessions.close()


class AiohttpAddress:
    """One address, and the headers of every request to it."""

    def __init__(self, sessions: OutboundSessions, url: str, headers: Mapping[str, str]) -> None:
        self._sessions = sessions
        self._url = URL(url)
        self._headers = dict(headers)  # they hold the key

    async def send(
        self, body: bytes, *, silence_s: float | None = None, total_s: float | None = None
    ) -> "AiohttpAnswer":
        """The answer with its head. `silence_s` bounds each wait for bytes, `total_s` the exchange to its end. Raises
        aiohttp.ClientError, EgressBlockedError, TimeoutError. Cancellation closes the connection."""
        url = self._url
        session = await self._sessions.to(url.scheme, url.raw_host or "", url.port)
        timeout = _timeout(silence_s, total_s)
        response = await session.post(url, data=body, headers=self._headers, allow_redirects=False, timeout=timeout)
        return AiohttpAnswer(response)


@lru_cache(maxsize=16)
def _timeout(silence_s: float | None, total_s: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=CONNECT_TIMEOUT_S, sock_read=silence_s)


class AiohttpAnswer:
    """An answer whose body is decompressed and read as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    @property
    def is_complete(self) -> bool:
        """Whether the body was read to its end."""
        return self._response.content.at_eof()

    async def read(self) -> bytes:
        """What has come of the body; empty at its end. Raises aiohttp.ClientError, TimeoutError."""
        return await self._response.content.readany()

    def close(self) -> None:
        """Discard the rest of the body. The connection is closed if there is any."""
        self._response.close()
