"""SealAudit: seal the entries of the audit trail, in batches, shortly after they are written."""

import asyncio
import logging
from collections.abc import Awaitable
from datetime import timedelta
from itertools import count

from application.audit.ports import AuditSeals, Place, SealKeys
from application.system.periodic import every
from application.system.ports import Clock
from domain.audit.chain import ChainKeys
from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId

logger = logging.getLogger(__name__)

SEAL_EVERY_S = 1.0
BATCH = 250
STRETCH = 5_000

NEAR = timedelta(seconds=5)
"""How far back every round looks. Entries are stored within moments of their timestamp."""
FAR, FAR_EVERY = timedelta(minutes=1), 10
"""How far back every tenth round looks, for entries of slow transactions."""
DAY, DAY_EVERY = timedelta(days=1), 300
"""How far back a round looks every five minutes, for entries that waited for an unavailable
database."""

_EPOCH_US = 1_000_000


class SealAudit:
    """Rules:
    - Sealing delays no transaction of a run, and needs no row besides the entry's own. Therefore
      unsealed entries are found by time.
    - Every round looks a few seconds back and some look further. The sweep at the start covers
      everything, which repairs a crash between an entry and its seal.
    - Any number of processes may seal at once.
    - A chain without a genuine head is not extended, so that tampering is not sealed over.
    """

    def __init__(self, *, seals: AuditSeals, keys: SealKeys, clock: Clock, batch: int = BATCH) -> None:
        self._seals = seals
        self._keys = keys
        self._clock = clock
        self._batch = batch
        self._refused: set[OrganizationId] = set()
        self._first_sweep: asyncio.Future[None] | None = None

    async def execute(self, *, look_back: timedelta = NEAR) -> int:
        """Seal the entries of the last `look_back`. Returns how many were sealed."""
        since = self._place(look_back)
        waiting = await self._seals.waiting(since, self._keys.current().id)
        if not waiting:
            return 0
        keys = await self._keys.all()
        return sum([await self._seal(each.organization_id, each.since, keys) for each in waiting])

    async def sweep(self, *, look_back: timedelta | None = None) -> int:
        """Seal the entries of a long period, or all, in bounded queries. Returns how many were
        sealed."""
        keys = await self._keys.all()
        start = Place(at=-(2**62)) if look_back is None else self._place(look_back)
        sealed = 0
        for organization_id in await self._seals.organizations():
            place: Place | None = start
            while place is not None:
                stretch = await self._seals.scan(organization_id, place, STRETCH)
                if stretch.unsealed:
                    sealed += await self._seal(organization_id, stretch.unsealed[0], keys)
                place = stretch.next
        return sealed

    async def keep(self) -> None:
        """Sweep everything, then seal until cancelled."""
        self._first_sweep = asyncio.get_running_loop().create_future()
        try:
            await self._attempt(self.sweep())
        finally:
            self._first_sweep.set_result(None)
        numbers = count(1)
        await every(SEAL_EVERY_S, lambda: self._step(next(numbers)), task="audit-seals")

    async def _step(self, number: int) -> None:
        if number % DAY_EVERY == 0:
            await self.sweep(look_back=DAY)
        else:
            await self.execute(look_back=FAR if number % FAR_EVERY == 0 else NEAR)

    async def caught_up(self) -> None:
        """Wait for the first sweep of `keep`, which seals the entries that earlier processes left
        unsealed."""
        if self._first_sweep is not None:
            await asyncio.shield(self._first_sweep)

    async def finish(self) -> None:
        """Seal the entries of the last steps of a stopping process."""
        await self._attempt(self.execute(look_back=FAR))

    async def _attempt(self, work: Awaitable[int]) -> None:
        try:
            await work
        except Exception:
            logger.exception("sealing the audit trail failed; will retry")

    async def _seal(self, organization_id: OrganizationId, since: Place, keys: ChainKeys) -> int:
        entries = 0
        place: Place | None = since
        try:
            while place is not None:
                sealed = await self._seals.seal(
                    organization_id, place, keys=keys, at=self._clock.now(), limit=self._batch
                )
                entries += sealed.count
                place = sealed.last if sealed.count == self._batch else None
        except ServiceError as error:
            if error.kind is not ErrorKind.CONFLICT:
                raise
            self._refuse(organization_id, error)
        else:
            self._refused.discard(organization_id)
        return entries

    def _refuse(self, organization_id: OrganizationId, error: ServiceError) -> None:
        """Log the refusal once, not every second."""
        if organization_id not in self._refused:
            self._refused.add(organization_id)
            logger.error("%s", error.detail, extra={"organization_id": organization_id})

    def _place(self, look_back: timedelta) -> Place:
        return Place(at=int((self._clock.now() - look_back).timestamp() * _EPOCH_US))
