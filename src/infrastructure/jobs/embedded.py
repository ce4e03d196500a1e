"""The run queue of the embedded set-up: one process, one event loop, nothing stored.

Only the doorbell: what is lost with the process is found again in the database by the sweep for runs.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.ids import RunId

logger = logging.getLogger(__name__)

RunHandler = Callable[[RunId], Awaitable[None]]


class InProcessRunQueue:
    """Runs are handled in the order they were submitted, each by one handler at a time. A run submitted while it waits is
    queued once; submitted while it is being handled it is handled once more after that (claiming it decides). Memory is
    one entry per waiting run. To be used from one event loop, with one consumer."""

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
        """Whether there is a consumer that takes runs."""
        return self._attended.is_set()

    async def until_attended(self) -> None:
        """Wait for a consumer that takes runs."""
        await self._attended.wait()

    @property
    def waiting(self) -> int:
        """How many runs wait for a place."""
        return len(self._waiting) + len(self._again)

    @property
    def in_hand(self) -> int:
        """How many runs are being handled."""
        return len(self._in_hand)

    async def submit(self, *run_ids: RunId) -> None:
        """Ring for the runs; never waits. What is submitted before a consumer comes is kept for it."""
        for run_id in run_ids:
            if run_id in self._in_hand:
                self._again[run_id] = None
            else:
                self._waiting[run_id] = None
                self._changed.set()

    async def consume(self, handler: RunHandler, *, concurrency: int) -> None:
        """Handle runs, at most `concurrency` at a time, until drained; cancelling it cancels the handlers too.

        An exception of a handler is logged and touches no other run. Raises RuntimeError when there is a consumer already.
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
        """Take no run any more, for good, and wait until those in hand are done. False if some are not after
        `timeout_s`; they go on, and draining again waits for them again."""
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
