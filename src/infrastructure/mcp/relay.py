"""Hands on what comes for a listener, one at a time and in order, without holding up whoever brings it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

MAX_WAITING = 512
"""For a listener that is slower than its server, of more the oldest are dropped; all that the log of a call may say fits in."""
_News = TypeVar("_News")


class Relay(Generic[_News]):
    """For one request. What the listener raises is logged."""

    def __init__(self, tell: Callable[[_News], Awaitable[None]]) -> None:
        self._tell = tell
        self._queue: deque[_News] = deque(maxlen=MAX_WAITING)
        self._task: asyncio.Task[None] | None = None

    def put(self, news: _News) -> None:
        """Something has come."""
        self._queue.append(news)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._deliver(), name="mcp-relay")

    async def finish(self, grace_s: float) -> None:
        """Waits until all of it is delivered, as long as allowed."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=grace_s)

    def stop(self) -> None:
        """The request is over: the rest is dropped."""
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    async def _deliver(self) -> None:
        while self._queue:
            try:
                await self._tell(self._queue.popleft())
            except Exception:
                logger.exception("a listener to a request failed")
