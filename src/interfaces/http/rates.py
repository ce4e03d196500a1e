"""Rate limits in bodies."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.rate_limit import RateLimit
from interfaces.http.bodies import Body
from interfaces.http.rate_views import RateLimitView


class RateLimitBody(Body):
    """A rate: `calls` per `per_s` seconds. After a pause, a burst of `calls` is allowed."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"calls": 60, "per_s": 60},)

    shown_as: ClassVar[type] = RateLimitView

    calls: int = Field(gt=0, le=1_000_000)
    per_s: float = Field(gt=0, le=86_400)

    def to_domain(self) -> RateLimit:
        return RateLimit(**self.values())
