"""A bound on registrations of clients per address."""

import math

from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.rate_limit import CallSchedule, RateLimit

REGISTRATIONS = RateLimit(calls=20, per_s=60.0)
_ADDRESSES = 10_000


class RegistrationLimit:
    """Counted in this process. Of more addresses than fit, the least recently used are dropped."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._taken: LruCache[str, CallSchedule] = LruCache(_ADDRESSES)

    def take(self, address: str) -> None:
        """Raises LIMIT `rate_limited` after too many registrations of the address."""
        now = self._clock.monotonic()
        schedule = self._taken.get(address) or CallSchedule(limit=REGISTRATIONS)
        wait_s = schedule.wait_s(now)
        if wait_s > 0:
            seconds = math.ceil(wait_s)
            detail = f"Too many registrations. Try again in {seconds} s."
            raise ServiceError("rate_limited", ErrorKind.LIMIT, detail, extra={"retry_after_s": str(seconds)})
        self._taken.put(address, schedule.taken(now))
