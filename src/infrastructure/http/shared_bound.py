"""Bound over what all organizations use at the same time. Above: proxies of started servers,
sandboxes of code. Standard library only."""

import asyncio
from weakref import WeakValueDictionary


class SharedBound:
    """At most `most` at a time, and at most half of them for one organization; more wait, first
    come, first served."""

    def __init__(self, most: int) -> None:
        self._all = asyncio.Semaphore(most)
        self._half = max(1, most // 2)
        self._by_organization: WeakValueDictionary[str, OrganizationBound] = WeakValueDictionary()

    def of(self, organization_id: str) -> "OrganizationBound":
        bound = self._by_organization.get(organization_id)
        if bound is None:
            bound = self._by_organization[organization_id] = OrganizationBound(self._half, self._all)
        return bound


class OrganizationBound:
    """The part of one organization. Who acquires also releases."""

    def __init__(self, most: int, shared: asyncio.Semaphore) -> None:
        self._own = asyncio.Semaphore(most)
        self._shared = shared

    async def acquire(self) -> None:
        await self._own.acquire()
        try:
            await self._shared.acquire()
        except BaseException:
            self._own.release()
            raise

    def release(self) -> None:
        self._shared.release()
        self._own.release()
