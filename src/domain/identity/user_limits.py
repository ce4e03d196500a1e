"""Limits of one user beside the daily budget: the rate of requests, and how many runs are
active."""

from collections.abc import Iterator
from dataclasses import dataclass

from domain.errors import Violation
from domain.rate_limit import RateLimit

MAX_ACTIVE_RUNS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLimits:
    """None sets no limit.

    - `rate_limit` bounds the requests of the user, however they come: to the API, the gateway and
      the console.
    - `max_active_runs` of the user may be queued or in progress. Runs that wait for people are not
      among them.
    """

    rate_limit: RateLimit | None = None
    max_active_runs: int | None = None

    def or_else(self, others: "UserLimits") -> "UserLimits":
        """These limits, with those of `others` where this has none."""
        return UserLimits(
            rate_limit=self.rate_limit or others.rate_limit,
            max_active_runs=self.max_active_runs or others.max_active_runs,
        )

    def violations(self, path: str) -> Iterator[Violation]:
        if self.max_active_runs is not None and not 0 < self.max_active_runs <= MAX_ACTIVE_RUNS:
            yield Violation(path=f"{path}.max_active_runs", message=f"must be 1 to {MAX_ACTIVE_RUNS}")
