"""Rate limits for server calls and for requests with a key. Pure; times are seconds of a monotonic
clock."""

from dataclasses import dataclass

from domain.errors import Violation, invalid


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSchedule:
    """A token bucket of `limit.calls` tokens, stored as the time at which it will be full again. It
    needs no timer (generic cell rate algorithm, ITU-T I.371)."""

    limit: RateLimit
    full_at: float = float("-inf")

    def wait_s(self, now: float) -> float:
        interval_s = self.limit.per_s / self.limit.calls
        return max(0.0, self.full_at + interval_s - self.limit.per_s - now)

    def taken(self, now: float) -> "CallSchedule":
        """The schedule after the next place, `wait_s` from now, was given to a call."""
        return CallSchedule(limit=self.limit, full_at=max(self.full_at, now) + self.limit.per_s / self.limit.calls)
