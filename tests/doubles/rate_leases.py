"""Shared token buckets in memory."""

from collections.abc import Sequence

from application.system.ports import Clock
from application.system.rates import Bucket
from domain.rate_limit import CallSchedule, RateLimit, RateLot


class InMemoryRateLeases:
    """The `RateLeases` port on one clock. Counts questions; raises `failure` if one is set."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._schedules: dict[tuple[str, RateLimit], CallSchedule] = {}
        self.questions = 0
        self.failure: Exception | None = None

    async def lease(self, bucket: str, limit: RateLimit, *, wanted: int, within_s: float) -> RateLot:
        self.questions += 1
        if self.failure is not None:
            raise self.failure
        schedule = self._schedules.get((bucket, limit)) or CallSchedule(limit=limit)
        lot, self._schedules[bucket, limit] = schedule.leased(wanted, self._clock.monotonic(), within_s)
        return lot

    async def forget_full(self) -> None:
        now = self._clock.monotonic()
        self._schedules = {key: schedule for key, schedule in self._schedules.items() if schedule.full_at > now}

    async def used(self, buckets: Sequence[Bucket]) -> tuple[int, ...]:
        now = self._clock.monotonic()
        found = [(self._schedules.get((bucket, limit)), limit) for bucket, limit in buckets]
        return tuple((schedule or CallSchedule(limit=limit)).used(now) for schedule, limit in found)
