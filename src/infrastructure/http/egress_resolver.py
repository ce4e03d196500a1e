"""The part of the egress guard that checks resolved addresses and every connection. Above: HTTP
clients. Below: aiohttp's resolver."""

import ipaddress
import socket

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from application.system.lru import LruCache
from infrastructure.http.egress import Address, EgressBlockedError, EgressPolicy

_MAX_BY_NAME = 1_000


class GuardedResolver(AbstractResolver):
    """Resolves by `inner`, and returns permitted addresses only. Clients open sockets by
    `open_socket`, since literal addresses bypass the resolver."""

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner
        self._by_name: LruCache[Address, bool] = LruCache(_MAX_BY_NAME)
        """Addresses permitted only as results of an allowed name."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The permitted addresses of `host`. Raises EgressBlockedError if none is permitted."""
        found = await self._inner.resolve(host, port, family)
        permitted: list[ResolveResult] = []
        refusal: EgressBlockedError | None = None
        for result in found:
            try:
                self._check(host, _address(result["host"]))
            except EgressBlockedError as blocked:
                refusal = blocked
            else:
                permitted.append(result)
        if refusal is not None and not permitted:
            raise refusal
        return permitted

    def open_socket(self, target: AddrInfoType) -> socket.socket:
        """A socket for one connection. Raises EgressBlockedError for a forbidden address."""
        family, kind, protocol, _, place = target
        address = _address(str(place[0]))
        if address not in self._by_name:
            self._policy.check_address(str(address), address)
        return socket.socket(family=family, type=kind, proto=protocol)

    def _check(self, host: str, address: Address) -> None:
        self._policy.check_address(host, address)
        if not self._policy.permits(str(address), address):
            self._by_name.put(address, True)

    async def close(self) -> None:
        await self._inner.close()


def _address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])
