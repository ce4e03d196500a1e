"""Rate limits for server calls and for requests with a key. Pure; times are seconds of one
clock."""

import math
from dataclasses import dataclass

from domain.errors import Violation, invalid

_ROUNDING = 1e-6
"""Of a place: what sums of floating-point seconds may be off by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """`calls` per `per_s` seconds on average; after a pause, a burst of `calls` is allowed."""

    calls: int
    per_s: float

    def __post_init__(self) -> None:
        wrong = [
            Violation(path=f"rate_limit.{name}", message="must be greater than 0")
            for name, number in (("calls", self.calls), ("per_s", self.per_s))
            if not number > 0
        ]
        if wrong:
            raise invalid("rate_limit_invalid", "The rate limit is not valid.", *wrong)

    @property
    def interval_s(self) -> float:
        """Seconds from one call to the next on average."""
        return self.per_s / self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLot:
    """`count` places in a row: the first `first_s` from now (below 0: since then), each other one
    an interval later. Without a place, `first_s` is when the next one will be."""

    count: int
    first_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSchedule:
    """A token bucket of `limit.calls` tokens, stored as the time at which it will be full again. It
    needs no timer (generic cell rate algorithm, ITU-T I.371)."""

    limit: RateLimit
    full_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        limit = self.limit
        return max(0.0, self.full_at + limit.per_s / limit.calls - limit.per_s - now)

    def taken(self, now: float) -> "CallSchedule":
        """The schedule after the next place, `wait_s` from now, was given to a call."""
        limit = self.limit
        return CallSchedule(limit=limit, full_at=max(self.full_at, now) + limit.per_s / limit.calls)

    def used(self, now: float) -> int:
        """The places that are taken and not free again."""
        left = max(0.0, self.full_at - now) / self.limit.interval_s
        return min(self.limit.calls, math.ceil(left - _ROUNDING))

    def leased(self, wanted: int, now: float, within_s: float) -> "tuple[RateLot, CallSchedule]":
        """The next places, at most `wanted` and none later than `within_s` from now, and the
        schedule without them."""
        limit, begin = self.limit, max(self.full_at, now)
        possible = math.floor((limit.per_s + within_s - (begin - now)) / limit.interval_s + _ROUNDING)
        count = max(0, min(wanted, possible))
        lot = RateLot(count=count, first_s=begin - now + limit.interval_s - limit.per_s)
        return lot, CallSchedule(limit=limit, full_at=begin + count * limit.interval_s)
