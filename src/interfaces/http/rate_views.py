"""Rate limits in responses."""

from typing import TypedDict

from domain.rate_limit import RateLimit


class RateLimitView(TypedDict):
    """`calls` per `per_s` seconds."""

    calls: int
    per_s: float


def rate_limit_view(limit: RateLimit | None) -> RateLimitView | None:
    return None if limit is None else {"calls": limit.calls, "per_s": limit.per_s}
