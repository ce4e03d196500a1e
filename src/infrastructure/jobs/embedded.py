"""The run queue of a single process: one event loop, nothing stored.

The queue only signals runs. What is lost with the process is found in the database by run recovery.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.ids import RunId

logger = logging.getLogger(__name__)

RunHandler = Callable[[RunId], Awaitable[None]]


class InProcessRunQueue:
    """Runs are handled in order of submission, each by one handler at a time.

    - A run that is submitted while it waits is queued once. A run that is submitted while it is
      being handled is handled once more afterwards; claiming it decides.
    - Memory is one entry per waiting run.
    - Use it from one event loop, with one consumer.
    """

    def __init__(self) -> None:
        self._waiting: dict[RunId, None] = {}
        self._in_hand: set[RunId] = set()
        self._again: dict[RunId, None] = {}
        self._changed = asyncio.Event()
        self._draining = False
        self._consuming = False
        self._attended = asyncio.Event()

    @property
    def attended(self) -> bool:
        """Whether a consumer takes runs."""
        return self._attended.is_set()

    async def until_attended(self) -> None:
        """Wait for a consumer."""
        await self._attended.wait()

    @property
    def waiting(self) -> int:
        return len(self._waiting) + len(self._again)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    async def submit(self, *run_ids: RunId) -> None:
        """Signal the runs; never waits. Runs submitted without a consumer wait for one."""
        for run_id in run_ids:
            if run_id in self._in_hand:
                self._again[run_id] = None
            else:
                self._waiting[run_id] = None
                self._changed.set()

    async def consume(self, handler: RunHandler, *, concurrency: int) -> None:
        """Handle runs, at most `concurrency` at a time, until drained. Cancellation cancels the
        handlers too.

        An exception of a handler is logged and affects no other run. Raises RuntimeError if a
        consumer exists.
        """
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if self._consuming:
            raise RuntimeError("the queue has a consumer already")
        self._consuming = True
        self._attended.set()
        try:
            async with asyncio.TaskGroup() as handlers:
                while not self._draining:
                    while self._waiting and len(self._in_hand) < concurrency:
                        run_id = next(iter(self._waiting))
                        del self._waiting[run_id]
                        self._in_hand.add(run_id)
                        handlers.create_task(self._handle(handler, run_id), name=f"run {run_id}")
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            self._consuming = False
            self._attended.clear()

    async def drain(self, timeout_s: float) -> bool:
        """Take no more runs, permanently, and wait for those being handled. False if some are
        unfinished after `timeout_s`; they continue, and draining again waits again."""
        self._draining = True
        self._changed.set()
        try:
            async with asyncio.timeout(timeout_s):
                while self._in_hand:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return not self._in_hand
        return True

    async def _handle(self, handler: RunHandler, run_id: RunId) -> None:
        try:
            await handler(run_id)
        except Exception:
            logger.exception("run could not be handled", extra={"run_id": run_id})
        finally:
            self._in_hand.discard(run_id)
            if run_id in self._again:
                del self._again[run_id]
                self._waiting[run_id] = None
            self._changed.set()
