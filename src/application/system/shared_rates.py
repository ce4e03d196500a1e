"""Rates of calls over all processes on a database: places are leased in lots, so that most calls
read nothing. ADR 0081."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context
from typing import Protocol

from application.system.lru import LruCache
from application.system.ports import Clock
from application.system.rates import CAPACITY, Bucket, TooSoon
from domain.errors import ServiceError, is_storage_away
from domain.rate_limit import RateLimit, RateLot

LOT_S = 0.2
"""A lot has the places of this time at most, or one."""
VOID_AFTER_S = 1.0
"""A place that was not used for this time is lost, so that processes do not save places for a
burst."""
PAUSE_S = 0.1
"""Between two questions for places of a bucket that has few."""
_FORGET_EVERY_S = 600.0


class RateLeases(Protocol):
    """Buckets that processes share, on the clock of the database."""

    async def lease(self, bucket: str, limit: RateLimit, *, wanted: int, within_s: float) -> RateLot:
        """Take the bucket's next places, at most `wanted` and none later than `within_s` from now.
        Raises UNAVAILABLE `storage_unavailable`."""
        ...

    async def forget_full(self) -> None:
        """Delete buckets that are full: they are as if never used."""
        ...

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        """As `RateUse.used`."""
        ...


class SharedRates:
    """Rules:
    - A call takes a place of the lot that its process has. Without one it waits for the next lot.
    - The next lot is leased in the background when half of one is used.
    - Lots grow while they are used up, to the places of LOT_S; a dead process takes one lot along.
    - A bucket without places is asked again after a pause; calls are refused until then.
    - While the database is away, calls with time to wait retry; others are refused with its error
      once the lot is used.
    """

    def __init__(
        self,
        *,
        leases: RateLeases,
        clock: Clock,
        capacity: int = CAPACITY,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._sleep = sleep
        self._lots: LruCache[tuple[str, int, float], _Lots] = LruCache(capacity)
        self._leasing: set[asyncio.Task[ServiceError | None]] = set()
        self._forget_at = clock.monotonic() + _FORGET_EVERY_S

    def turn(self, buckets: Sequence[Bucket], max_wait_s: float = 0.0) -> float | Awaitable[float]:
        now = self._clock.monotonic()
        lots = [self._of(bucket, limit) for bucket, limit in buckets]
        wait_s = _wait_s(lots, now)
        if wait_s is not None:
            return self._taken(lots, now, wait_s, max_wait_s)
        _refuse_known(lots, now, max_wait_s)
        return self._turn_of_next_lot(lots, max_wait_s)

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        """With the places that processes have leased ahead."""
        return await self._leases.used(buckets)

    async def close(self) -> None:
        """Wait for lots that are being leased."""
        while self._leasing:
            await asyncio.wait(self._leasing)

    def _of(self, bucket: str, limit: RateLimit) -> "_Lots":
        key = (bucket, limit.calls, limit.per_s)
        lots = self._lots.get(key)
        if lots is None:
            lots = _Lots(bucket, limit)
            self._lots.put(key, lots)
        return lots

    def _taken(self, lots: "Sequence[_Lots]", now: float, wait_s: float, max_wait_s: float) -> float:
        if wait_s > 0 and wait_s >= max_wait_s:
            raise TooSoon(wait_s)
        for each in lots:
            if each.take(now):
                _ = self._lease(each, 0.0)
        return wait_s

    async def _turn_of_next_lot(self, lots: "Sequence[_Lots]", max_wait_s: float) -> float:
        until = self._clock.monotonic() + max_wait_s
        while True:
            now = self._clock.monotonic()
            left_s = max(0.0, until - now)
            wait_s = _wait_s(lots, now)
            if wait_s is not None:
                return self._taken(lots, now, wait_s, left_s)
            _refuse_known(lots, now, left_s)
            for each in lots:
                if each.current(now) is None:
                    failure = await asyncio.shield(self._lease(each, left_s))
                    if failure is not None:
                        await self._wait_for_database(failure, until)

    async def _wait_for_database(self, failure: ServiceError, until: float) -> None:
        if not is_storage_away(failure) or self._clock.monotonic() + PAUSE_S >= until:
            raise failure
        await self._sleep(PAUSE_S)

    def _lease(self, lots: "_Lots", within_s: float) -> "asyncio.Task[ServiceError | None]":
        """Begin to lease the bucket's next lot, unless that is under way."""
        if lots.leasing is None:
            # Without the caller's context: a retry deadline of one caller does not hold up others.
            lots.leasing = asyncio.get_running_loop().create_task(self._leased(lots, within_s), context=Context())
            self._leasing.add(lots.leasing)
            lots.leasing.add_done_callback(self._leasing.discard)
        return lots.leasing

    async def _leased(self, lots: "_Lots", within_s: float) -> ServiceError | None:
        """Lease the next lot. Returns the database's error."""
        wanted = lots.next_size(self._clock.monotonic())
        try:
            lot = await self._leases.lease(lots.bucket, lots.limit, wanted=wanted, within_s=within_s)
            now = self._clock.monotonic()
            lots.add(lot, wanted, now)
            if now >= self._forget_at:
                self._forget_at = now + _FORGET_EVERY_S
                await self._leases.forget_full()
        except ServiceError as error:
            return error
        finally:
            lots.leasing = None
        return None


class _Lot:
    """Places of this process. The next is at `next_at`; all are lost at `void_at`."""

    __slots__ = ("left", "next_at", "size", "void_at")

    def __init__(self, size: int, next_at: float, void_at: float) -> None:
        self.size = self.left = size
        self.next_at = next_at
        self.void_at = void_at


_NONE = _Lot(0, 0.0, float("-inf"))


class _Lots:
    """The lots of one bucket: one in use, and the next one once it was leased."""

    __slots__ = ("_interval_s", "_lot", "_most", "_spare", "ask_at", "bucket", "leasing", "limit", "next_at", "wanted")

    def __init__(self, bucket: str, limit: RateLimit) -> None:
        self.bucket = bucket
        self.limit = limit
        self.leasing: asyncio.Task[ServiceError | None] | None = None
        self.next_at = self.ask_at = float("-inf")  # of places that are not leased: when the next is, and when to ask
        self._interval_s = limit.interval_s
        self._most = max(1, int(LOT_S / limit.interval_s))
        self.wanted = 1
        self._lot = _NONE
        self._spare: _Lot | None = None

    def current(self, now: float) -> _Lot | None:
        """The lot with the next place of this process, if it has one."""
        lot = self._lot
        if lot.left and now < lot.void_at:
            return lot
        spare, self._spare = self._spare, None
        if spare is not None and now < spare.void_at:
            self._lot = spare
            return spare
        return None

    def take(self, now: float) -> bool:
        """Take a place of `current`; whether it is time to lease the next lot."""
        lot = self._lot
        lot.left -= 1
        lot.next_at += self._interval_s
        return 2 * lot.left <= lot.size > 1 and self._spare is None and self.leasing is None and now >= self.ask_at

    def next_size(self, now: float) -> int:
        """As many places as a second needs: more when a lot was used up in time, fewer when some
        were lost."""
        lot = self._lot
        if lot.size:
            used = lot.size - lot.left
            self.wanted = min(2 * lot.size, self._most) if now < lot.void_at else max(1, min(used, self._most))
        return self.wanted

    def add(self, leased: RateLot, wanted: int, now: float) -> None:
        first_at = now + leased.first_s
        self.next_at = first_at + leased.count * self._interval_s
        if leased.count < wanted:
            self.ask_at = now + min(PAUSE_S, self.limit.per_s / 2)
        if leased.count:
            lot = _Lot(leased.count, first_at, max(now, self.next_at) + VOID_AFTER_S)
            if self.current(now) is None:
                self._lot = lot
            else:
                self._spare = lot

    def refused_for_s(self, now: float, max_wait_s: float) -> float:
        """Seconds until a place that a caller with `max_wait_s` cannot get sooner, as far as that
        is known; else 0."""
        wait_s = self.next_at - now
        if wait_s > 0 and wait_s >= max_wait_s:
            return wait_s
        return self.ask_at - now if max_wait_s <= 0 and now < self.ask_at else 0.0


def _wait_s(lots: Sequence[_Lots], now: float) -> float | None:
    """Seconds until the later of the next places; None if a lot has none."""
    wait_s = 0.0
    for each in lots:
        lot = each.current(now)
        if lot is None:
            return None
        wait_s = max(wait_s, lot.next_at - now)
    return wait_s


def _refuse_known(lots: Sequence[_Lots], now: float, max_wait_s: float) -> None:
    """Raises: TooSoon if it is known that a bucket has no place in time."""
    wait_s = max([each.refused_for_s(now, max_wait_s) for each in lots if each.current(now) is None])
    if wait_s > 0:
        raise TooSoon(wait_s)
