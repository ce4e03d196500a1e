"""The run queue of many processes: Procrastinate on PostgreSQL, behind the `RunQueue` port.

Like the embedded queue it only signals runs: claiming a run decides, and run recovery signals the
runs of a lost process.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from domain.errors import ServiceError
from domain.ids import RunId
from infrastructure.jobs.fair_order import spare_places
from infrastructure.jobs.queue_session import LOST, Job, QueueSession, queue_session
from infrastructure.persistence.engine.database import SYSTEM, Database
from infrastructure.persistence.engine.postgres.queue_functions import SUBMIT
from infrastructure.persistence.engine.prepared import Prepared

logger = logging.getLogger(__name__)

RunHandler = Callable[[RunId], Awaitable[None]]

LOOK_EVERY_S = 5.0
"""How often jobs are fetched without a notification, as a safety net."""
_RETRY_S = 0.5
_LEAVE_S = 2.0
"""How long a stopping consumer may take to unregister. Other consumers clean up what it leaves
behind."""

_submit = Prepared(text(SUBMIT))


def submit_runs(connection: Connection, run_ids: Sequence[RunId]) -> None:
    """Signal the runs when the transaction of `connection` commits, with any role."""
    _submit.ask(connection, {"run_ids": list(run_ids)})


@dataclass(slots=True)
class _InHand:
    """A run that is being handled, and the jobs that requested it."""

    jobs: list[int] = field(default_factory=list)
    again: bool = False


class ProcrastinateRunQueue:
    """Each submitted run is handled by one consuming process, in the fair order of `take_runs`.

    A run that is submitted while it waits is queued once. A run that is submitted while this
    process handles it is handled once more afterwards. `url` is the consumer's database connection;
    `database` is used to submit runs.

    Procrastinate's own worker (3.10) is not used: it loses a notification that arrives while it
    fetches without result, fetches one job at a time, and couples runs to connections. Here the
    notification flag is cleared before jobs are fetched, so that a notification meanwhile leads to
    another fetch.
    """

    def __init__(self, url: str, *, database: Database, look_every_s: float = LOOK_EVERY_S) -> None:
        self._url = url
        self._database = database
        self._look_every_s = look_every_s
        self._in_hand: dict[RunId, _InHand] = {}
        self._handlers: set[asyncio.Task[None]] = set()
        self._ended: list[int] = []
        self._signalled = asyncio.Event()
        self._draining = asyncio.Event()
        self._fetched = asyncio.Event()
        self._consuming = False
        self._attended = asyncio.Event()

    @property
    def attended(self) -> bool:
        """Whether a consumer is registered with the queue and listens."""
        return self._attended.is_set()

    async def until_attended(self) -> None:
        """Wait for a consumer that listens."""
        await self._attended.wait()

    async def submit(self, *run_ids: RunId) -> None:
        """Signal the runs. Run recovery finds those that cannot be signalled now."""
        if not run_ids:
            return
        try:
            await self._database.write(lambda connection: submit_runs(connection, run_ids), scope=SYSTEM)
        except ServiceError as error:
            logger.warning("runs could not be signalled: %s", error.detail, extra={"runs": len(run_ids)})

    def beside(self, run_id: RunId) -> AbstractAsyncContextManager[None]:
        """A run is executed without having been taken: `take_runs` counts it once it is in
        progress."""
        return nullcontext()

    async def consume(self, handler: RunHandler, *, concurrency: int) -> None:
        """Handle runs, at most `concurrency` at a time and others in spare places, until drained.
        Cancellation cancels the handlers too.

        An exception of a handler is logged and affects no other run. While the database is
        unavailable, runs being handled continue. Raises RuntimeError if a consumer exists.
        """
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if self._consuming:
            raise RuntimeError("the queue has a consumer already")
        self._consuming = True
        self._fetched.clear()
        try:
            async with asyncio.TaskGroup() as handlers:

                def begin(job: Job) -> None:
                    self._begin(job, handlers, handler)

                while not self._draining.is_set():
                    await self._fetch(begin, concurrency)
                self._fetched.set()
        finally:
            self._fetched.set()
            self._consuming = False

    async def drain(self, timeout_s: float) -> bool:
        """Take no more runs, permanently, and wait for those being handled. False if some are
        unfinished after `timeout_s`; they continue, and draining again waits again."""
        self._draining.set()
        self._signalled.set()
        if self._handlers:
            await asyncio.wait(tuple(self._handlers), timeout=timeout_s)
        if self._handlers:
            return False
        if self._consuming:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(timeout_s, _LEAVE_S)):
                    await self._fetched.wait()
        return True

    async def _fetch(self, begin: Callable[[Job], None], concurrency: int) -> None:
        """Fetch runs until drained, or until a connection is lost; then pause."""
        try:
            async with queue_session(self._url, signalled=self._signalled, attended=self._attended) as session:
                try:
                    while not self._draining.is_set():
                        await self._fetch_once(session, begin, concurrency)
                finally:
                    await self._leave(session)
        except* LOST as lost:
            logger.warning("fetching runs interrupted (%s); reconnecting", type(lost.exceptions[0]).__name__)
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # Python 3.11 drops the cancellation of a task while one of its task groups fails.
            raise asyncio.CancelledError
        if not self._draining.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await self._draining.wait()

    async def _fetch_once(self, session: QueueSession, begin: Callable[[Job], None], concurrency: int) -> None:
        """Fetch as many jobs as there are free slots. Then wait for a run to end, a notification,
        or the next interval."""
        self._signalled.clear()
        places = max(concurrency - len(self._in_hand), 0)
        spare = min(spare_places(concurrency), concurrency + spare_places(concurrency) - len(self._in_hand))
        ended = tuple(self._ended)
        taken = await self._take(session, places, spare, ended) if places or spare or ended else []
        # Only now: ids that are lost on the way are reported again over the next connection.
        del self._ended[: len(ended)]
        if self._draining.is_set():
            await self._give_back(taken)
            return
        for job in taken:
            begin(job)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._look_every_s):
                await self._signalled.wait()

    async def _take(self, session: QueueSession, places: int, spare: int, ended: tuple[int, ...]) -> list[Job]:
        """Take jobs from the session. If the listening connection is lost meanwhile, the taken jobs
        are given back, because the queue would treat them as being handled."""
        taking = asyncio.create_task(session.take(places, spare=spare, ended=ended))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            with suppress(*LOST, TimeoutError):
                async with asyncio.timeout(_LEAVE_S):
                    await self._give_back(await taking)
            raise

    async def _give_back(self, taken: list[Job]) -> None:
        await self.submit(*(job.run_id for job in taken))
        self._ended += (job.id for job in taken)

    async def _leave(self, session: QueueSession) -> None:
        """Unregister. Runs being handled outlive their jobs, because their leases protect them."""
        in_hand = (job for run in self._in_hand.values() for job in run.jobs)
        try:
            async with asyncio.timeout(_LEAVE_S):
                await session.leave(ended=(*self._ended, *in_hand))
        except (*LOST, TimeoutError) as error:
            logger.info("consumer could not unregister from the run queue (%s)", type(error).__name__)
        else:
            self._ended.clear()

    def _begin(self, job: Job, handlers: asyncio.TaskGroup, handler: RunHandler) -> None:
        run = self._in_hand.get(job.run_id)
        if run is not None:
            run.jobs.append(job.id)
            run.again = True
            return
        self._in_hand[job.run_id] = run = _InHand([job.id])
        task = handlers.create_task(self._handle(job.run_id, run, handler), name=f"run {job.run_id}")
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _handle(self, run_id: RunId, run: _InHand, handler: RunHandler) -> None:
        try:
            while True:
                run.again = False
                try:
                    await handler(run_id)
                except Exception:
                    logger.exception("run could not be handled", extra={"run_id": run_id})
                if not run.again or self._draining.is_set():
                    break
            if run.again:
                await self.submit(run_id)
        finally:
            del self._in_hand[run_id]
            self._ended += run.jobs
            self._signalled.set()
