"""Stops a run from outside: waits on models and tools are interrupted, writes are not."""

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self

from application.system.deadline import Deadline


class StopReason(StrEnum):
    """Why a worker stops executing a run."""

    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


class Interrupted(Exception):
    """The run was stopped; raised at a wait, or between two steps."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class TimeUp(Exception):
    """A wait timed out. Distinct from a TimeoutError raised inside the wait."""


class StopSignal:
    """One per claimed run. Any task of the loop may call `fire`; the first reason is used."""

    def __init__(self) -> None:
        self._reason: StopReason | None = None
        self.actor = "system"
        self._draining = False
        self._waits: set[Deadline] = set()

    def fire(self, reason: StopReason, *, actor: str = "system") -> None:
        """End all present and future waits. `actor` requested the stop."""
        if self._reason is None:
            self._reason = reason
            self.actor = actor
            now = asyncio.get_running_loop().time()
            for wait in self._waits:
                if not wait.expired():  # an expired wait ends by itself and cannot be rescheduled
                    wait.reschedule(now)

    def drain(self) -> None:
        """Let the current step finish, then stop for SHUTDOWN at the next `check`."""
        self._draining = True

    def check(self) -> None:
        """Raise Interrupted if the run must stop. Called between two steps."""
        if self._reason is not None:
            raise Interrupted(self._reason)
        if self._draining:
            raise Interrupted(StopReason.SHUTDOWN)

    @property
    def fired(self) -> StopReason | None:
        return self._reason

    def interruptible(self, timeout_s: float | None) -> "Wait":
        """Context for a wait (never a write): raises Interrupted when fired, TimeUp after
        `timeout_s`. Errors from inside, including TimeoutError, pass unchanged."""
        when = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        return Wait(self, self._waits, when)


class Wait(Deadline):
    """A block that `signal` or its deadline ends. Enter it once, in the waiting task."""

    __slots__ = ("_signal", "_waits")

    def __init__(self, signal: StopSignal, waits: set[Deadline], when: float | None) -> None:
        super().__init__(when)
        self._signal = signal
        self._waits = waits

    def __enter__(self) -> Self:
        if self._signal.fired is not None:
            raise Interrupted(self._signal.fired)
        super().__enter__()
        self._waits.add(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._waits.discard(self)
        try:
            super().__exit__(exc_type, exc, traceback)
        except TimeoutError:
            pass
        else:
            if not (self.expired() and isinstance(exc, TimeoutError)):
                return
        if self._signal.fired is not None:
            raise Interrupted(self._signal.fired) from None
        raise TimeUp from None
