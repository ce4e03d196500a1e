"""The way for POSTs of one kind that are made all the time: an address with its headers, prepared once, over kept connections.

A general client costs several times as much per call. What is given up is what these calls do not use: redirects, cookies,
compression, requests without a body. Below: `KeptConnections`; above: the model adapters.
"""

import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver

from infrastructure.http.egress import EgressPolicy
from infrastructure.http.egress_resolver import GuardedResolver
from infrastructure.http.kept_connection import HttpAnswer, Origin
from infrastructure.http.kept_http import KeptConnections, head_of

_KEPT_FOR_S = 50.0
"""Less than the minute after which the balancers before the large providers end an unused connection."""


class KeptPosts:
    """Connections to addresses. With `egress`, only permitted addresses are connected to."""

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

    def to(self, url: str, headers: Mapping[str, str]) -> "KeptPost":
        """Where requests go, and what each of them says. Raises ValueError for a header that would be several."""
        # httpx's, for the name as it is sent and resolved (IDNA).
        target = httpx.URL(url)
        is_tls = target.scheme == "https"
        host = target.raw_host.decode("ascii")
        origin = Origin(host, target.port or (443 if is_tls else 80), is_tls, target.netloc.decode("ascii"))
        return KeptPost(self._connections, origin, head_of(origin, target.raw_path.decode("ascii"), headers))

    async def aclose(self) -> None:
        """End all connections."""
        await self._connections.close()
        if self._resolver is not None:
            await self._resolver.close()

    async def _addresses(self, host: str, port: int) -> list[str]:
        if self._egress is None and _is_address(host):
            return [host]
        if self._resolver is None:
            system = aiohttp.DefaultResolver()  # which wants a running loop
            self._resolver = system if self._egress is None else GuardedResolver(self._egress, system)
        if isinstance(self._resolver, GuardedResolver) and (literal := self._resolver.literal(host)) is not None:
            return [literal]
        return [found["host"] for found in await self._resolver.resolve(host, port, socket.AF_UNSPEC)]


class KeptPost:
    """One address, and the head of every request to it."""

    def __init__(self, connections: KeptConnections, origin: Origin, head: bytes) -> None:
        self._connections = connections
        self._origin = origin
        self._head = head  # it holds the key

    async def send(self, body: bytes, *, wait_s: float, limit: int) -> HttpAnswer:
        """The answer, whole if it is JSON, else as it comes. Raises as `KeptConnections.post` does."""
        return await self._connections.post(self._origin, self._head, body, limit=limit, wait_s=wait_s)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _comes_in_pieces(content_type: str) -> bool:
    """Some servers forget to call a stream one. What is JSON is of use only when it is whole."""
    return not content_type.partition(";")[0].strip().endswith("json")
