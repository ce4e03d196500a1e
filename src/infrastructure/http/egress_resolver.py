"""The half of the egress guard that looks at addresses: those that names resolve to, and that of every connection. Below:
aiohttp's resolver; above: its clients."""

import ipaddress
import socket

from aiohappyeyeballs import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from application.system.lru import LruCache
from infrastructure.http.egress import Address, EgressBlockedError, EgressPolicy

_MAX_BY_NAME = 1_000


class GuardedResolver(AbstractResolver):
    """Resolves like `inner` and hands on the permitted addresses only. A client takes its sockets from `open_socket` as well,
    since it asks no resolver about an address that a URL writes out, in whatever spelling."""

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner
        self._by_name: LruCache[Address, bool] = LruCache(_MAX_BY_NAME)
        """Addresses that are permitted only because an allowed name resolves to them."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The permitted addresses of `host`. Raises EgressBlockedError if there are addresses and none is permitted."""
        found = await self._inner.resolve(host, port, family)
        permitted: list[ResolveResult] = []
        refusal: EgressBlockedError | None = None
        for result in found:
            try:
                self._look_at(host, _address(result["host"]))
            except EgressBlockedError as blocked:
                refusal = blocked
            else:
                permitted.append(result)
        if refusal is not None and not permitted:
            raise refusal
        return permitted

    def open_socket(self, target: AddrInfoType) -> socket.socket:
        """A socket for one connection. Raises EgressBlockedError for an address that may not be reached."""
        family, kind, protocol, _, place = target
        address = _address(str(place[0]))
        if address not in self._by_name:
            self._policy.check_address(str(address), address)
        return socket.socket(family=family, type=kind, proto=protocol)

    def _look_at(self, host: str, address: Address) -> None:
        self._policy.check_address(host, address)
        if not self._policy.permits(str(address), address):
            self._by_name.put(address, True)

    async def close(self) -> None:
        """Close the resolver below."""
        await self._inner.close()


def _address(text: str) -> Address:
    return ipaddress.ip_address(text.partition("%")[0])
