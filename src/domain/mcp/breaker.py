"""The circuit breaker of one server: which calls are sent after failures. Pure.

Times are seconds of a monotonic clock.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

_MAX_DOUBLINGS = 30


class BreakerState(StrEnum):
    """Closed: every call is sent. Open: none is. Half-open: one call is sent as a probe, and its
    outcome decides."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class CallOutcome(StrEnum):
    """What a call says about its server. `neither`: the call was cancelled, or never reached the
    server."""

    ANSWERED = "answered"
    FAILED = "failed"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerSettings:
    """The breaker opens after `failures` in a row, for `first_pause_s`. Each failed probe doubles
    the pause, up to `longest_pause_s`."""

    failures: int = 5
    first_pause_s: float = 10.0
    longest_pause_s: float = 120.0

    def __post_init__(self) -> None:
        if self.failures < 1 or not 0 < self.first_pause_s <= self.longest_pause_s:
            raise ValueError("a circuit breaker needs at least one failure and pauses that do not shrink")

    def pause_s(self, openings: int) -> float:
        """The pause of the `openings`-th opening in a row (from 1)."""
        return min(self.first_pause_s * 2.0 ** min(openings - 1, _MAX_DOUBLINGS), self.longest_pause_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitBreaker:
    """The state of a circuit breaker, as an immutable value.

    - Before a call, `refused_for_s` must return None. Send the call and store `admitted(now)`.
    - After the call, pass its outcome to `settled` with the `epoch` in which it was sent.
    - The epoch counts state changes: outcomes of calls from an earlier epoch are ignored.
    """

    settings: BreakerSettings = BreakerSettings()
    epoch: int = 0
    failures: int = 0
    openings: int = 0
    retry_at: float | None = None
    is_probed: bool = False

    @property
    def state(self) -> BreakerState:
        """The state. An open breaker stays open after its pause until a call comes."""
        if self.retry_at is None:
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if self.is_probed else BreakerState.OPEN

    def refused_for_s(self, now: float) -> float | None:
        """None if a call may be sent, otherwise the seconds to wait; 0 while a probe is in
        progress."""
        if self.retry_at is None:
            return None
        if self.is_probed:
            return 0.0
        return self.retry_at - now if now < self.retry_at else None

    def admitted(self, now: float) -> "CircuitBreaker":
        """The state after a call was sent. Raises ValueError if none may be sent."""
        if self.refused_for_s(now) is not None:
            raise ValueError("the circuit breaker lets no call through now")
        return self if self.retry_at is None else replace(self, epoch=self.epoch + 1, is_probed=True)

    def settled(self, epoch: int, outcome: CallOutcome, now: float) -> "CircuitBreaker":
        """The state after the call that was sent in `epoch` ended."""
        if epoch != self.epoch:
            return self
        if self.retry_at is not None:
            return self._probed(outcome, now)
        if outcome is CallOutcome.ANSWERED:
            return replace(self, failures=0) if self.failures else self
        if outcome is CallOutcome.NEITHER:
            return self
        failures = self.failures + 1
        return replace(self, failures=failures) if failures < self.settings.failures else self._opened(now)

    def hastened(self, now: float) -> "CircuitBreaker":
        """The state after the server showed activity: the pause is over, and the next call is the
        probe."""
        if self.retry_at is None or self.retry_at <= now:
            return self
        return replace(self, retry_at=now)

    def told_failures(self, failures: int) -> "CircuitBreaker":
        """The state after other processes counted so many failures in a row. Only a failure seen
        here opens."""
        if self.retry_at is not None:
            return self
        failures = min(failures, self.settings.failures - 1)
        return self if failures == self.failures else replace(self, failures=failures)

    def told_open(self, openings: int, retry_at: float) -> "CircuitBreaker":
        """The state after the breaker of another process opened."""
        return CircuitBreaker(settings=self.settings, epoch=self.epoch + 1, openings=openings, retry_at=retry_at)

    def reset(self) -> "CircuitBreaker":
        """The closed state, for a server that was found to work."""
        return CircuitBreaker(settings=self.settings, epoch=self.epoch + 1)

    def _probed(self, outcome: CallOutcome, now: float) -> "CircuitBreaker":
        if outcome is CallOutcome.ANSWERED:
            return self.reset()
        if outcome is CallOutcome.FAILED:
            return self._opened(now)
        return replace(self, epoch=self.epoch + 1, is_probed=False)

    def _opened(self, now: float) -> "CircuitBreaker":
        openings = self.openings + 1
        return CircuitBreaker(
            settings=self.settings,
            epoch=self.epoch + 1,
            openings=openings,
            retry_at=now + self.settings.pause_s(openings),
        )
