"""Failed sign-ins: a bound per address, and a log line for each, up to a bound."""

import logging
import math

from application.system.lru import LruCache
from application.system.ports import Clock
from domain.errors import ErrorKind, ServiceError
from domain.rate_limit import CallSchedule, RateLimit
from interfaces.http.line_budget import LineBudget

logger = logging.getLogger(__name__)

FAILURES = RateLimit(calls=10, per_s=60.0)
"""Failures of one address; further attempts wait, with a right key too."""
_ADDRESSES = 10_000
_LINES, _WINDOW_S = 20, 10.0
_KIND = "sign-in"


class SignInAttempts:
    """Counted in this process. Of more addresses than fit, the least recently used are dropped."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._failures: LruCache[str, CallSchedule] = LruCache(_ADDRESSES)
        self._lines = LineBudget(lines=_LINES, window_s=_WINDOW_S, report=_suppressed)

    def require_room(self, address: str) -> None:
        """Raises LIMIT `rate_limited` after too many failures of the address."""
        schedule = self._failures.get(address)
        wait_s = 0.0 if schedule is None else schedule.wait_s(self._clock.monotonic())
        if wait_s > 0:
            seconds = math.ceil(wait_s)
            detail = f"Too many failed sign-ins. Try again in {seconds} s."
            raise ServiceError("rate_limited", ErrorKind.LIMIT, detail, extra={"retry_after_s": str(seconds)})

    def failed(self, address: str) -> None:
        """Count and log a failure."""
        schedule = self._failures.get(address) or CallSchedule(limit=FAILURES)
        self._failures.put(address, schedule.taken(self._clock.monotonic()))
        if self._lines.admits(_KIND):
            logger.warning("sign-in failed", extra={"client": address})


def _suppressed(_kind: str, count: int) -> None:
    logger.warning("sign-in lines suppressed", extra={"suppressed": count, "window_s": _WINDOW_S})
