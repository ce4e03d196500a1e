"""An httpx transport for POSTs that are made all the time: kept connections, one write per request, no pool of objects per call.

aiohttp's transport behind httpx's client costs three times as much per call. What is given up is what these calls do not
use: redirects, cookies, compression, requests without a body. Below: `KeptConnections`; above: the model adapters.
"""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import cast

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver

from infrastructure.egress import EgressPolicy
from infrastructure.egress_resolver import GuardedResolver
from infrastructure.kept_http import (
    BrokenError,
    HttpAnswer,
    KeptConnections,
    NotConnectedError,
    Origin,
    head_of,
)

_KEPT_FOR_S = 50.0
"""Less than the minute after which the balancers before the large providers end an unused connection."""
_MAX_WHOLE_BYTES = 64 * 1024 * 1024
"""More than any caller takes of an answer that comes in one piece."""


class KeptTransport(httpx.AsyncBaseTransport):
    """Sends each request as it is; what httpx's timeouts say of `read` bounds each wait for the other side. With `egress`, names
    resolve to permitted addresses only; URLs that write an address out are the caller's to look at."""

    def __init__(
        self,
        *,
        context: Callable[[], ssl.SSLContext],
        egress: EgressPolicy | None = None,
        connect_timeout_s: float = 10.0,
        kept_for_s: float = _KEPT_FOR_S,
    ) -> None:
        self._egress = egress
        self._resolver: AbstractResolver | None = None
        self._connections = KeptConnections(
            resolve=self._addresses,
            context=context,
            connect_timeout_s=connect_timeout_s,
            kept_for_s=kept_for_s,
            streams=_comes_in_pieces,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer, its body as it comes. Raises ConnectError, ConnectTimeout, ReadTimeout, RemoteProtocolError, and
        UnsupportedProtocol for anything but a POST."""
        if request.method != "POST":
            raise httpx.UnsupportedProtocol("only POST goes this way", request=request)
        url = request.url
        body = b"".join(request.stream) if isinstance(request.stream, httpx.ByteStream) else await request.aread()
        is_tls = url.scheme == "https"
        # The name as it is sent and resolved: httpx shows it decoded, and fails where it cannot be.
        host = url.raw_host.decode("ascii")
        origin = Origin(host, url.port or (443 if is_tls else 80), is_tls, url.netloc.decode("ascii"))
        head = head_of(origin, url.raw_path.decode("ascii"), request.headers)
        read_s = cast("float | None", request.extensions.get("timeout", {}).get("read"))
        try:
            async with asyncio.timeout(read_s):
                answer = await self._connections.post(origin, head, body, limit=_MAX_WHOLE_BYTES)
        except NotConnectedError as exc:
            kind = httpx.ConnectTimeout if isinstance(exc.__cause__, TimeoutError) else httpx.ConnectError
            raise kind("no connection came about", request=request) from exc
        except BrokenError as exc:
            raise httpx.RemoteProtocolError("the server's answer is not complete", request=request) from exc
        except TimeoutError as exc:
            raise httpx.ReadTimeout("nothing came", request=request) from exc
        return httpx.Response(answer.status, headers=_as_sent(answer), stream=_Body(answer, read_s), request=request)

    async def aclose(self) -> None:
        """End all connections."""
        await self._connections.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            if self._resolver is None:
                system = aiohttp.DefaultResolver()  # which wants a running loop
                self._resolver = system if self._egress is None else GuardedResolver(self._egress, system)
            return [found["host"] for found in await self._resolver.resolve(host, port, socket.AF_UNSPEC)]
        return [host]


class _Body(httpx.AsyncByteStream):
    """An answer's body. Left before its end, it takes the connection with it."""

    def __init__(self, answer: HttpAnswer, read_s: float | None) -> None:
        self._answer = answer
        self._read_s = read_s
        self._chunks = answer.chunks()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            async with asyncio.timeout(self._read_s):
                return await anext(self._chunks)
        except BrokenError as exc:
            raise httpx.ReadError("the connection ended before the answer did") from exc
        except TimeoutError as exc:
            raise httpx.ReadTimeout("nothing more came") from exc

    async def aclose(self) -> None:
        """Give the connection back, or end it."""
        self._answer.close()


def _as_sent(answer: HttpAnswer) -> list[tuple[bytes, bytes]]:
    """The headers in the server's bytes: httpx takes text of ASCII only, and servers send more."""
    return [
        (name.encode("latin-1"), value.encode("utf-8", "surrogateescape")) for name, value in answer.headers.items()
    ]


def _comes_in_pieces(content_type: str) -> bool:
    """Some servers forget to call a stream one. What is JSON is of use only when it is whole."""
    return not content_type.partition(";")[0].strip().endswith("json")
