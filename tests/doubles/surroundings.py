"""Clocks and identifiers that do what they are told, for tests that need the same times and ids
every time."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


class FixedClock:
    """Stands still until it is advanced."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._now = start

    def now(self) -> datetime:
        """The present moment, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since the clock's start."""
        return (self._now - self._start).total_seconds()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)


class StepClock:
    """Goes on by one step whenever the wall time is read, so that no two records have the same
    time."""

    def __init__(self, start: datetime = START, *, step_s: float = 1.0) -> None:
        self._start = start
        self._next = start
        self._step = timedelta(seconds=step_s)

    def now(self) -> datetime:
        """The present moment, in UTC; later at every call."""
        moment = self._next
        self._next += self._step
        return moment

    def monotonic(self) -> float:
        """Seconds since the clock's start; reading it takes no time."""
        return (self._next - self._start).total_seconds()

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._next += timedelta(seconds=seconds)


class SequentialIds:
    """Identifiers in counting order: `run_00000000000000000000000001`, and so on over all
    prefixes."""

    def __init__(self) -> None:
        self._count = 0

    def new(self, prefix: str) -> str:
        """`prefix_` and 26 digits that sort by time."""
        self._count += 1
        return f"{prefix}_{self._count:026d}"

    def new_token(self) -> str:
        """An API token that anybody could guess."""
        self._count += 1
        return f"dgm_{self._count:043d}"
