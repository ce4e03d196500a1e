"""The run queue of a single process: one event loop, nothing stored, a fair order.

The queue only signals runs. What is lost with the process is found in the database by run recovery.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from itertools import islice

from domain.errors import ServiceError
from domain.ids import RunId
from domain.runs.lane import Flow
from infrastructure.jobs.fair_order import FairOrder, spare_places

logger = logging.getLogger(__name__)

RunHandler = Callable[[RunId], Awaitable[None]]
RunFlows = Callable[[Mapping[RunId, Flow | None]], Awaitable[Mapping[RunId, Flow]]]
"""The flows of submitted runs, as far as they are known. A flow that is given has the line of its
run, without weight and bounds."""

_UNKNOWN = Flow(organization_id="")
_LOT = 1_000
"""Runs whose flows are read at once."""


class InProcessRunQueue:
    """Runs are handled in the order of `FairOrder`, each by one handler at a time.

    - The flows of runs are read in lots when they are submitted, except those of runs that their
      store signalled with their lines. Runs of unknown flow share one.
    - A run that is submitted while it waits is queued once. A run that is submitted while it is
      being handled is handled once more afterwards; claiming it decides.
    - A run waits while its organization or agent has as many runs in hand, or executed beside the
      queue, as may be in progress. Whether a bound has changed is read when waiting runs are
      submitted again, which run recovery does.
    - Memory is one entry per run that waits or is being handled.
    - Use it from one event loop, with one consumer.
    """

    def __init__(self, flows: RunFlows | None = None) -> None:
        """Without `flows` all runs share one."""
        self._flows = flows
        self._arrived: dict[RunId, Flow | None] = {}
        """With the line, if it is known."""
        self._submitted_again = False
        self._order = FairOrder()
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
        return len(self._arrived) + len(self._order) + len(self._again)

    @property
    def in_hand(self) -> int:
        return len(self._in_hand)

    async def submit(self, *run_ids: RunId) -> None:
        """Signal the runs; never waits. Runs submitted without a consumer wait for one."""
        for run_id in run_ids:
            self.signal(run_id)

    def signal(self, run_id: RunId, line: Flow | None = None) -> None:
        """Signal one run, with the `line` in which it waits if that is known."""
        if run_id in self._in_hand:
            self._again[run_id] = None
            return
        if run_id in self._order:
            self._submitted_again = True
        else:
            self._arrived[run_id] = line
        self._changed.set()

    def discard(self, run_id: RunId) -> None:
        """The run has ended while it waited: it has no place any more."""
        self._arrived.pop(run_id, None)
        self._order.discard(run_id)

    @asynccontextmanager
    async def beside(self, run_id: RunId) -> AsyncIterator[None]:
        """A run that is executed without having been taken has a place meanwhile. Raises
        ServiceError without storage."""
        known = {} if self._flows is None else await self._flows({run_id: None})
        flow = known.get(run_id, _UNKNOWN)
        self._order.occupy(flow)
        try:
            yield
        finally:
            self._order.release(flow)
            self._changed.set()

    async def consume(self, handler: RunHandler, *, concurrency: int) -> None:
        """Handle runs, at most `concurrency` at a time and others in spare places, until drained.
        Cancellation cancels the handlers too.

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
                    self._changed.clear()
                    await self._place_arrived()
                    for run_id in self._next(concurrency):
                        self._in_hand.add(run_id)
                        handlers.create_task(self._handle(handler, run_id), name=f"run {run_id}")
                    await self._changed.wait()
        finally:
            self._consuming = False
            self._attended.clear()

    async def _place_arrived(self) -> None:
        """Give submitted runs their places. Without storage they stay; the next submission tries
        again."""
        blocked = self._order.blocked() if self._submitted_again else iter(())
        self._submitted_again = False
        lot = {**dict(islice(self._arrived.items(), _LOT)), **dict.fromkeys(islice(blocked, _LOT))}
        if not lot:
            return
        try:
            flows = {} if self._flows is None else await self._flows(lot)
        except ServiceError as error:
            logger.warning("submitted runs wait for storage: %s", error.detail, extra={"runs": len(self._arrived)})
            return
        for run_id in lot:
            if run_id in self._arrived:
                del self._arrived[run_id]
                self._order.add(run_id, flows.get(run_id, _UNKNOWN))
            elif run_id in self._order and run_id in flows:
                self._order.add(run_id, flows[run_id])
        if self._arrived:
            self._changed.set()

    def _next(self, concurrency: int) -> Iterator[RunId]:
        """Runs for the free places; none once the queue drains."""
        while not self._draining and len(self._in_hand) < concurrency + spare_places(concurrency):
            run_id = self._order.take(spare=len(self._in_hand) >= concurrency)
            if run_id is None:
                return
            yield run_id

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
            self._order.left(run_id)
            if run_id in self._again:
                del self._again[run_id]
                self._arrived[run_id] = None
            self._changed.set()
