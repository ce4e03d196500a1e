"""Limits on restarts of a server process that exits by itself. Pure; times are seconds of a
monotonic clock."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLimit:
    """After `crashes` in a row, each within `stable_s` of the start, the server is not started for
    `pause_s`."""

    crashes: int = 5
    stable_s: float = 60.0
    pause_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """The recent crashes of one server. A process that lives for `stable_s` resets the count."""

    limit: RestartLimit = RestartLimit()
    crashes: int = 0
    not_before: float = float("-inf")

    def crashed(self, *, lived_s: float, now: float) -> "Restarts":
        """The state after a process exited by itself after `lived_s`."""
        crashes = self.crashes + 1 if lived_s < self.limit.stable_s else 1
        if crashes < self.limit.crashes:
            return Restarts(limit=self.limit, crashes=crashes)
        # After the pause, one more crash starts the next pause.
        return Restarts(limit=self.limit, crashes=self.limit.crashes - 1, not_before=now + self.limit.pause_s)

    def pause_left_s(self, now: float) -> float:
        """The seconds until the server may be started; 0 if it may be now."""
        return max(0.0, self.not_before - now)
