"""Stopping a run from outside: waits on models and tools are cut short, writes never are."""

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self

from application.system.deadline import Deadline


class StopReason(StrEnum):
    """Why a worker lets go of a run."""

    CANCELLED = "cancelled"
    SHUTDOWN = "shutdown"
    LEASE_LOST = "lease_lost"


class Interrupted(Exception):
    """The run was asked to stop; raised at a wait, or between two steps."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class TimeUp(Exception):
    """The time given to a wait has passed. A type of its own: a TimeoutError from inside the wait is somebody else's."""


class StopSignal:
    """One per claimed run. `fire` may come from any task of the loop; the first reason stands."""

    def __init__(self) -> None:
        self._reason: StopReason | None = None
        self.actor = "system"
        self._draining = False
        self._waits: set[Deadline] = set()

    def fire(self, reason: StopReason, *, actor: str = "system") -> None:
        """End all waits now, and every later one at once. `actor` is who asked for it."""
        if self._reason is None:
            self._reason = reason
            self.actor = actor
            now = asyncio.get_running_loop().time()
            for wait in self._waits:
                if not wait.expired():  # one whose time is up ends by itself, and cannot be changed any more
                    wait.reschedule(now)

    def drain(self) -> None:
        """Let the step in hand finish, then stop for SHUTDOWN at the next `check`."""
        self._draining = True

    def check(self) -> None:
        """Raise Interrupted if the run should not go on; called between two steps."""
        if self._reason is not None:
            raise Interrupted(self._reason)
        if self._draining:
            raise Interrupted(StopReason.SHUTDOWN)

    @property
    def fired(self) -> StopReason | None:
        """The reason, once there is one."""
        return self._reason

    def interruptible(self, timeout_s: float | None) -> "Wait":
        """Wrap a wait (never a write): raises Interrupted when fired, TimeUp after `timeout_s`. Errors from
        inside, TimeoutError among them, pass as they are."""
        when = None if timeout_s is None else asyncio.get_running_loop().time() + timeout_s
        return Wait(self, self._waits, when)


class Wait(Deadline):
    """A block that `signal` ends, or its time. To be entered once, in the task that waits."""

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
