"""Deadline: what `asyncio.timeout_at` does, for the way of a call, where each of its coroutines and look-ups counts."""

import asyncio
from types import TracebackType
from typing import Self


class Deadline:
    """Cancels the block it is entered around at `when` (event loop time, None: never), which then raises TimeoutError. To be
    entered once, in a task. A cancellation from elsewhere stays one, as with `asyncio.timeout`."""

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
        """When it is over."""
        return self._when

    def expired(self) -> bool:
        """Whether it was over before the block was."""
        return self._expired

    def reschedule(self, when: float | None) -> None:
        """Another time, None for none, as long as it is not over. Once the block is left, whoever still asks moves nothing: the task
        is at something else by then."""
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
