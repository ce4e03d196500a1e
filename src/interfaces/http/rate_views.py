"""Rate limits in responses."""

from typing import Annotated, TypedDict

from domain.rate_limit import RateLimit


class RateLimitView(TypedDict):
    """`calls` per `per_s` seconds."""

    calls: Annotated[int, "Calls per period; after a pause, a burst of as many is allowed."]
    per_s: Annotated[float, "Length of the period in seconds."]


def rate_limit_view(limit: RateLimit | None) -> RateLimitView | None:
    return None if limit is None else {"calls": limit.calls, "per_s": limit.per_s}
