"""Tool calls of an organization, summed by day and tool."""

from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsageSum:
    """The calls of one group, of runs and gateway sessions. `day` and `tool` are None if the sum
    includes all of them.

    - Days are in UTC. `tool` is the name that models see.
    - `calls` includes those that failed, and those that policy blocked.
    - `duration_ms` sums the calls that were sent.
    """

    day: date | None
    tool: str | None
    calls: int
    failed_calls: int
    blocked_calls: int
    duration_ms: int

    @property
    def mean_s(self) -> float | None:
        """Mean seconds of a call that was sent; None without one."""
        sent = self.calls - self.blocked_calls
        return self.duration_ms / sent / 1000 if sent > 0 else None
