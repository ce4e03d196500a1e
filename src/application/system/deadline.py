"""Deadline: a cheaper `asyncio.timeout_at` for the path of a call."""

import asyncio
from types import TracebackType
from typing import Self


class Deadline:
    """Cancels its block at `when` (event loop time, None: never), and raises TimeoutError. Enter it
    once, in a task. Other cancellations pass, as with `asyncio.timeout`."""

    __slots__ = ("_cancelling", "_expired", "_handle", "_holds", "_loop", "_task", "_when")

    def __init__(self, when: float | None) -> None:
        self._when = when
        self._expired = self._holds = False
        self._handle: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        loop = self._loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        if task is None:
            raise RuntimeError("a deadline is entered in a task")
        self._task = task
        self._cancelling = task.cancelling()
        self._holds = True
        if self._when is not None:
            self._handle = loop.call_at(self._when, self._expire)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._holds = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if (
            self._expired
            and self._task.uncancel() <= self._cancelling
            and exc_type is not None
            and issubclass(exc_type, asyncio.CancelledError)
        ):
            raise TimeoutError from exc

    def when(self) -> float | None:
        return self._when

    def expired(self) -> bool:
        """Whether the deadline passed before the block ended."""
        return self._expired

    def reschedule(self, when: float | None) -> None:
        """Another time, None for none, if it has not expired. After the block it has no effect: the
        task does something else by then."""
        self._when = when
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if when is not None and self._holds and not self._expired:
            self._handle = self._loop.call_at(when, self._expire)

    def _expire(self) -> None:
        self._handle = None
        self._expired = True
        self._task.cancel()
