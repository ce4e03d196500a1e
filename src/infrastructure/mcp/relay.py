"""Delivers notifications to a listener in order, one at a time, without delaying their sender."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

logger = logging.getLogger(__name__)

MAX_WAITING = 512
"""Limit of waiting notifications; the oldest are dropped. All log messages of a call fit."""
_News = TypeVar("_News")


class Relay(Generic[_News]):
    """Deliveries of one request. Errors of the listener are logged."""

    def __init__(self, tell: Callable[[_News], Awaitable[None]]) -> None:
        self._tell = tell
        self._queue: deque[_News] = deque(maxlen=MAX_WAITING)
        self._task: asyncio.Task[None] | None = None

    def put(self, news: _News) -> None:
        self._queue.append(news)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._deliver(), name="mcp-relay")

    async def finish(self, grace_s: float) -> None:
        """Wait for the delivery, at most `grace_s`."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=grace_s)

    def stop(self) -> None:
        """Drop the rest."""
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    async def _deliver(self) -> None:
        while self._queue:
            try:
                await self._tell(self._queue.popleft())
            except Exception:
                logger.exception("a listener of an MCP request failed")
