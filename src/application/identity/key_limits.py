"""Request rate limits per API key, counted in this process."""

import math

from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.ids import ApiKeyId
from domain.rate_limit import CallSchedule, RateLimit

_CAPACITY = 10_000


class KeyLimits:
    """Two limits that both apply: `every`, the operator's limit per key, and the key's own.

    A refused request is not counted. At most `capacity` keys are tracked, least recently used ones
    are dropped first.
    """

    def __init__(self, *, every: RateLimit | None, clock: Clock, capacity: int = _CAPACITY) -> None:
        self._every = every
        self._clock = clock
        self._schedules: LruCache[tuple[ApiKeyId, int, float], CallSchedule] = LruCache(2 * capacity)

    def take(self, key_id: ApiKeyId, own: RateLimit | None) -> None:
        """Count a request. Raises LIMIT `rate_limited` (extra `retry_after_s`, whole seconds)."""
        held_to = [(key_id, limit) for limit in dict.fromkeys((self._every, own)) if limit is not None]
        if held_to:
            self._take(held_to)

    def take_of_session(self, session_id: ApiKeyId, key_id: ApiKeyId, own: RateLimit | None) -> None:
        """Count a request of a gateway session. The operator's limit applies to the session as if
        it were a key; the key's own limit is shared with the key. Raises as `take`."""
        held_to = [(session_id, self._every)] if self._every is not None else []
        if own is not None:
            held_to.append((key_id, own))
        if held_to:
            self._take(held_to)

    def _take(self, held_to: list[tuple[ApiKeyId, RateLimit]]) -> None:
        now = self._clock.monotonic()
        keys = [(counted, limit.calls, limit.per_s) for counted, limit in held_to]
        schedules = [
            self._schedules.get(key) or CallSchedule(limit=limit) for key, (_, limit) in zip(keys, held_to, strict=True)
        ]
        wait_s = max([schedule.wait_s(now) for schedule in schedules])
        if wait_s > 0:
            seconds = math.ceil(wait_s)
            raise ServiceError(
                "rate_limited",
                ErrorKind.LIMIT,
                f"This key has sent too many requests. Try again in {seconds} s.",
                extra={"retry_after_s": str(seconds)},
            )
        for key, schedule in zip(keys, schedules, strict=True):
            self._schedules.put(key, schedule.taken(now))
