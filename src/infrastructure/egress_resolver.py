"""The half of the egress guard that looks at what names resolve to. Below: aiohttp's resolver; above: its clients."""

import ipaddress
import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from infrastructure.egress import EgressBlockedError, EgressPolicy


class GuardedResolver(AbstractResolver):
    """Resolves like `inner` and hands on the permitted addresses only."""

    def __init__(self, policy: EgressPolicy, inner: AbstractResolver) -> None:
        self._policy = policy
        self._inner = inner

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """The permitted addresses of `host`. Raises EgressBlockedError if there are addresses and none is permitted."""
        found = await self._inner.resolve(host, port, family)
        permitted: list[ResolveResult] = []
        refusal: EgressBlockedError | None = None
        for result in found:
            try:
                self._policy.check_address(host, ipaddress.ip_address(result["host"].partition("%")[0]))
            except EgressBlockedError as blocked:
                refusal = blocked
            else:
                permitted.append(result)
        if refusal is not None and not permitted:
            raise refusal
        return permitted

    async def close(self) -> None:
        """Close the resolver below."""
        await self._inner.close()
