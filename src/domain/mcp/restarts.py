"""How often a server that ends by itself is started again. Pure; times are seconds on a clock that never steps back."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartLimit:
    """After `crashes` in a row, each within `stable_s` of its start, the server is left alone for `pause_s`."""

    crashes: int = 5
    stable_s: float = 60.0
    pause_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """What is remembered of one server's ends. A life of `stable_s` makes good what was before it."""

    limit: RestartLimit = RestartLimit()
    crashes: int = 0
    not_before: float = float("-inf")

    def crashed(self, *, lived_s: float, now: float) -> "Restarts":
        """It ended by itself after `lived_s`."""
        crashes = self.crashes + 1 if lived_s < self.limit.stable_s else 1
        if crashes < self.limit.crashes:
            return Restarts(limit=self.limit, crashes=crashes)
        # Started again after the pause, it has one life before it is left alone anew.
        return Restarts(limit=self.limit, crashes=self.limit.crashes - 1, not_before=now + self.limit.pause_s)

    def left_alone_for_s(self, now: float) -> float:
        """How long it is not started; 0 if it may be."""
        return max(0.0, self.not_before - now)
