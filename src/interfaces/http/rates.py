"""Rate limits in bodies."""

from typing import ClassVar

from pydantic import Field

from domain.json_value import JsonObject
from domain.rate_limit import RateLimit
from interfaces.http.bodies import Body


class RateLimitBody(Body):
    """How often: `calls` per `per_s` seconds; after a rest, that many may go at once."""

    examples: ClassVar[tuple[JsonObject, ...]] = ({"calls": 60, "per_s": 60},)

    calls: int = Field(gt=0, le=1_000_000)
    per_s: float = Field(gt=0, le=86_400)

    def to_domain(self) -> RateLimit:
        """The limit."""
        return RateLimit(**self.values())
