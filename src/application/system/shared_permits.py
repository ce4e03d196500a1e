"""Limits of what is under way at one time in all processes on a database: each process leases
permits in lots. ADR 0081."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Protocol, TypeVar

from application.system.periodic import every
from domain.errors import ServiceError

logger = logging.getLogger(__name__)
_Result = TypeVar("_Result")

EXPIRES_S = 15.0
"""Permits of a process that does not renew them for this time are free."""
RENEW_S = 5.0
_FORGET_EVERY = 120
"""Renewals."""
WANTED, FREED = "permit_wanted", "permit_freed"
"""First words of the topics with which processes ask each other for permits."""


class PermitLeases(Protocol):
    """What each process (holder) has of shared limits, on the clock of the database."""

    async def lease(self, limited: str, holder: str, *, limit: int, held: int, wanted: int) -> int:
        """Store that the holder has `held` permits and as many more as `limit` allows, at most
        `wanted`. Those of `held` that have expired are leased like new ones. Returns how many it
        has now. Raises UNAVAILABLE `storage_unavailable`."""
        ...

    async def renew(self, holder: str, limited: frozenset[str]) -> frozenset[str]:
        """Prolong the holder's permits of these limits. Returns those in which it still has
        permits: others have expired."""
        ...

    async def withdraw(self, holder: str) -> None:
        """Free all permits of the holder."""
        ...

    async def forget_expired(self) -> None:
        """Delete what expired a while ago."""
        ...


class PermitSignals(Protocol):
    """Topics between processes."""

    def wake(self, *topics: str) -> None:
        """Send the topics to the other processes."""
        ...

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with each topic of another process that begins with `word` and a colon."""
        ...


class Permits:
    """What this process has of one limit.

    `spare` is called when another process waits for a permit (True) and now and then (False): it
    gives back what is not used. `freed` is called when another process gave some back.
    """

    __slots__ = ("freed", "held", "is_stored", "limit", "limited", "lock", "spare")

    def __init__(self, limited: str, limit: int, *, spare: Callable[[bool], None], freed: Callable[[], None]) -> None:
        self.limited = limited
        self.limit = limit
        self.spare = spare
        self.freed = freed
        self.held = 0
        self.is_stored = True
        self.lock = asyncio.Lock()


class SharedPermits:
    """One per process.

    - Permits are renewed together while the process lives, and expire soon after it died.
    - A process that lacks permits asks the others, which give back spare ones at once.
    """

    def __init__(self, *, leases: PermitLeases, holder: str, signals: PermitSignals) -> None:
        self._leases = leases
        self._holder = holder
        self._signals = signals
        self._permits: dict[str, Permits] = {}
        self._storing: set[asyncio.Task[object]] = set()
        self._renewals = 0
        signals.subscribe_prefix(WANTED, self._wanted)
        signals.subscribe_prefix(FREED, self._freed)

    def add(self, permits: Permits) -> None:
        """Renew these from now on, and ask for spare ones."""
        self._permits[permits.limited] = permits

    def removed(self, permits: Permits) -> bool:
        """Forget a limit without permits here, unless a question is under way."""
        if permits.held or not permits.is_stored or permits.lock.locked():
            return False
        del self._permits[permits.limited]
        return True

    async def lease(self, permits: Permits, wanted: int) -> int:
        """Get up to `wanted` more; returns how many. A caller that is cancelled does not interrupt
        the question. Raises UNAVAILABLE `storage_unavailable`."""
        asking = self._in_background(self._leased(permits, wanted))
        await asyncio.wait({asking})
        return asking.result()

    def want(self, permits: Permits) -> None:
        """Ask the other processes for spare permits."""
        self._signals.wake(f"{WANTED}:{permits.limited}")

    def give_back(self, permits: Permits, number: int) -> None:
        """Free permits, in the background."""
        if number > 0:
            permits.held -= number
            permits.is_stored = False
            _ = self._in_background(self._store(permits))

    async def keep(self) -> None:
        """Renew until cancelled."""
        await every(RENEW_S, self.renew, task="shared-permits")

    async def renew(self) -> None:
        """Prolong all permits, and give back unused ones. What has expired meanwhile is leased
        again when it is needed."""
        for permits in list(self._permits.values()):
            permits.spare(False)
        self._renewals += 1
        if self._renewals % _FORGET_EVERY == 0:
            await self._leases.forget_expired()
        if known := [permits for permits in self._permits.values() if permits.held]:
            renewed = await self._leases.renew(self._holder, frozenset(permits.limited for permits in known))
            for permits in known:
                if permits.held and permits.limited not in renewed:
                    logger.warning("permits expired while the database was away", extra={"limited": permits.limited})
                    permits.held, permits.is_stored = 0, False
        for permits in list(self._permits.values()):
            if not permits.is_stored and not permits.lock.locked():
                await self._store(permits)

    async def close(self) -> None:
        """Free all permits. Never raises."""
        while self._storing:
            await asyncio.wait(self._storing)
        try:
            await self._leases.withdraw(self._holder)
        except ServiceError as error:
            logger.info("withdrawing permits failed; they expire", extra={"code": error.code})

    def _in_background(self, work: Coroutine[object, object, _Result]) -> asyncio.Task[_Result]:
        """In no caller's context: without the deadlines of its run."""
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._storing.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[object]) -> None:
        self._storing.discard(task)
        if not task.cancelled():
            task.exception()  # a caller that still waits gets it

    async def _leased(self, permits: Permits, wanted: int) -> int:
        async with permits.lock:
            wanted = min(wanted, permits.limit - permits.held)
            return await self._stored(permits, wanted) if wanted > 0 else 0

    async def _stored(self, permits: Permits, wanted: int) -> int:
        """Store what this process has and up to `wanted` more, under the lock; returns how many
        more it got."""
        held = permits.held
        permits.is_stored = False  # until an answer says what is stored
        total = await self._leases.lease(permits.limited, self._holder, limit=permits.limit, held=held, wanted=wanted)
        # Some may have been given back, or have expired, meanwhile.
        permits.held = max(0, permits.held + total - held)
        permits.is_stored = permits.held == total
        return max(0, total - held)

    async def _store(self, permits: Permits) -> None:
        try:
            async with permits.lock:
                await self._stored(permits, 0)
        except ServiceError as error:
            # The next lease, give-back or renewal stores the number.
            logger.warning("giving permits back failed", extra={"limited": permits.limited, "code": error.code})
        else:
            self._signals.wake(f"{FREED}:{permits.limited}")

    def _wanted(self, topic: str) -> None:
        if (permits := self._permits.get(topic.partition(":")[2])) is not None:
            permits.spare(True)

    def _freed(self, topic: str) -> None:
        if (permits := self._permits.get(topic.partition(":")[2])) is not None:
            permits.freed()
