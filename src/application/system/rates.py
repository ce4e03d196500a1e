"""Rates of calls: the port of what counts them, and the count of one process."""

from collections.abc import Awaitable, Sequence
from typing import Protocol

from application.system.lru import LruCache
from application.system.ports import Clock
from domain.rate_limit import CallSchedule, RateLimit

CAPACITY = 20_000
"""Buckets that are remembered; the least recently used ones are forgotten first."""

Bucket = tuple[str, RateLimit]
"""An id and its limit. A changed limit is another bucket."""


class TooSoon(Exception):
    """The next call may go in `wait_s` seconds, which is too late. It was not counted."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"too soon by {wait_s} s")
        self.wait_s = wait_s


class Rates(Protocol):
    """Counts calls against the limits of buckets."""

    def turn(self, buckets: Sequence[Bucket], max_wait_s: float = 0.0) -> float | Awaitable[float]:
        """Take the next place in each bucket, or in none. Returns the seconds until the call may
        go; something to await if another place has to be asked first.

        Raises (also while it is awaited) TooSoon unless that is now, or before `max_wait_s`;
        UNAVAILABLE `storage_unavailable`."""
        ...


class RateUse(Protocol):
    """Reads how far the limits of buckets are used."""

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        """Of each bucket, the places that are taken now and not free again. Raises UNAVAILABLE
        `storage_unavailable`."""
        ...


class LocalRates:
    """Counts the calls of this process. A turn never has to be awaited."""

    def __init__(self, *, clock: Clock, capacity: int = CAPACITY) -> None:
        self._clock = clock
        self._schedules: LruCache[tuple[str, int, float], CallSchedule] = LruCache(capacity)

    def turn(self, buckets: Sequence[Bucket], max_wait_s: float = 0.0) -> float:
        now = self._clock.monotonic()
        taken: list[tuple[tuple[str, int, float], CallSchedule]] = []
        wait_s = 0.0
        for counted, limit in buckets:
            key = (counted, limit.calls, limit.per_s)
            schedule = self._schedules.get(key) or CallSchedule(limit=limit)
            wait_s = max(wait_s, schedule.wait_s(now))
            taken.append((key, schedule.taken(now)))
        if wait_s > 0 and wait_s >= max_wait_s:
            raise TooSoon(wait_s)
        for key, schedule in taken:
            self._schedules.put(key, schedule)
        return wait_s

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        now = self._clock.monotonic()
        found = [(self._schedules.get((counted, limit.calls, limit.per_s)), limit) for counted, limit in buckets]
        return tuple((schedule or CallSchedule(limit=limit)).used(now) for schedule, limit in found)

    async def close(self) -> None:
        """There is nothing to wait for."""
