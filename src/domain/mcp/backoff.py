"""Pauses between attempts to reconnect to a lost server: exponential backoff with full jitter.
Pure."""

from dataclasses import dataclass

_MAX_DOUBLINGS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Bounds that double from `first_s` up to `longest_s`. The pause is a uniform random part of
    the bound, so that many clients of one lost server do not reconnect together."""

    first_s: float = 0.5
    longest_s: float = 60.0

    def bound_s(self, attempt: int) -> float:
        """The longest pause before an attempt (the first is 0)."""
        return min(self.first_s * 2.0 ** min(attempt, _MAX_DOUBLINGS), self.longest_s)

    def pause_s(self, attempt: int, fraction: float) -> float:
        """The pause before an attempt; `fraction` is a random number from 0 to 1."""
        return self.bound_s(attempt) * fraction
