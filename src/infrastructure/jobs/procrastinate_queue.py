"""The run queue of many processes: Procrastinate on PostgreSQL, behind the `RunQueue` port.

Only the doorbell, as the embedded one is: claiming the run decides, and the sweep rings for what a lost process had in hand.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Status
from psycopg import sql
from psycopg_pool import AsyncConnectionPool, PoolTimeout
from sqlalchemy import Connection, text

from domain.errors import ServiceError
from domain.ids import RunId
from infrastructure.jobs.queue_schema import QUEUE, SCHEMA, TASK
from infrastructure.persistence.database import SYSTEM, Database
from infrastructure.persistence.roles import SYSTEM_ROLE

logger = logging.getLogger(__name__)

RunHandler = Callable[[RunId], Awaitable[None]]

CONNECTIONS = 4
"""How many connections the consumer holds at most, its listening one not counted."""
_RETRY_S = 0.5
_LOOK_EVERY_S = 0.25
"""How often jobs are looked for although nobody rang. The library's worker (3.10) forgets a notification that comes while it asks
for a job and gets none, which one in fifty does when runs follow closely on each other: with its 5 s they would wait that long."""
_POOL_PATIENCE_S = 5.0
_TIDY_EVERY_S = 60.0
_STALLED_S = 30.0
"""After how long without a heartbeat a consumer counts as gone, and what it had fetched is forgotten."""

_submit = text(f"SELECT {SCHEMA}.submit_runs(CAST(:run_ids AS text[]))")
_SETTING_OUT = sql.SQL("SELECT set_config('search_path', {schema}, false), set_config('role', {role}, false)").format(
    schema=SCHEMA, role=SYSTEM_ROLE
)


def submit_runs(connection: Connection, run_ids: Sequence[RunId]) -> None:
    """Ring for the runs once the transaction of `connection` commits, with any role."""
    connection.execute(_submit, {"run_ids": list(run_ids)})


class ProcrastinateRunQueue:
    """Each submitted run is handled by some process of those that consume, in about the order of submission. A run
    submitted while it waits is queued once; submitted while this process handles it, it is handled once more after that.

    `url` is the consumer's own way to the database, `database` the one by which runs are submitted.
    """

    def __init__(self, url: str, *, database: Database) -> None:
        self._url = url
        self._database = database
        self._in_hand: dict[RunId, asyncio.Task[None]] = {}
        self._again: set[RunId] = set()
        self._fetching: asyncio.Task[None] | None = None
        self._draining = False
        self._consuming = False

    async def submit(self, *run_ids: RunId) -> None:
        """Ring for the runs. What cannot be rung for now is found by the sweep."""
        if not run_ids:
            return
        try:
            await self._database.write(lambda connection: submit_runs(connection, run_ids), scope=SYSTEM)
        except ServiceError as error:
            logger.warning("runs could not be rung for: %s", error.detail, extra={"runs": len(run_ids)})

    async def consume(self, handler: RunHandler, *, concurrency: int) -> None:
        """Handle runs, at most `concurrency` at a time, until drained; cancelling it cancels the handlers too.

        An exception of a handler is logged and touches no other run. While the database is away those in hand go on.
        Raises RuntimeError when there is a consumer already.
        """
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        if self._consuming:
            raise RuntimeError("the queue has a consumer already")
        self._consuming = True
        places = asyncio.Semaphore(concurrency)
        try:
            async with asyncio.TaskGroup() as handlers:

                async def execute_run(run_id: str) -> None:
                    await self._ring(RunId(run_id), handlers, handler, places)

                while not self._draining:
                    fetching = asyncio.create_task(self._fetch(execute_run, concurrency), name="run-queue")
                    self._fetching = fetching
                    try:
                        await asyncio.wait((fetching,))
                    finally:
                        await _ended(fetching)
        finally:
            self._fetching = None
            self._consuming = False

    async def drain(self, timeout_s: float) -> bool:
        """Take no run any more, for good, and wait until those in hand are done. False if some are not after
        `timeout_s`; they go on, and draining again waits for them again."""
        self._draining = True
        if self._fetching is not None:
            _cancel(self._fetching)
        if self._in_hand:
            await asyncio.wait(tuple(self._in_hand.values()), timeout=timeout_s)
        return not self._in_hand

    async def _ring(
        self, run_id: RunId, handlers: asyncio.TaskGroup, handler: RunHandler, places: asyncio.Semaphore
    ) -> None:
        """One job: it ends with the handling of its run, so that no more is fetched than there are places for. Ended
        before, by a fetcher that stops, it leaves the handler alone."""
        if self._draining:
            await self.submit(run_id)
            return
        handling = self._in_hand.get(run_id)
        if handling is None:
            handling = handlers.create_task(self._handle(run_id, handler, places), name=f"run {run_id}")
            self._in_hand[run_id] = handling
        else:
            self._again.add(run_id)
        await asyncio.wait((handling,))

    async def _handle(self, run_id: RunId, handler: RunHandler, places: asyncio.Semaphore) -> None:
        try:
            # After an interruption there are handlers of before as well.
            async with places:
                while True:
                    self._again.discard(run_id)
                    try:
                        await handler(run_id)
                    except Exception:
                        logger.exception("run could not be handled", extra={"run_id": run_id})
                    if run_id not in self._again or self._draining:
                        break
        finally:
            del self._in_hand[run_id]
            self._again.discard(run_id)

    async def _fetch(self, execute_run: Callable[[str], Awaitable[None]], concurrency: int) -> None:
        """Fetch jobs until cancelled, or until the connection is lost; then pause."""
        pool = AsyncConnectionPool(
            self._url,
            min_size=1,
            max_size=CONNECTIONS,
            open=False,
            timeout=_POOL_PATIENCE_S,
            kwargs={"application_name": "dragoman-queue"},
            configure=_set_out,
            check=AsyncConnectionPool.check_connection,
        )
        connector = PsycopgConnector(configure=_set_out)
        app = App(connector=connector)
        app.task(name=TASK, queue=QUEUE)(execute_run)
        try:
            await pool.open(wait=True, timeout=_POOL_PATIENCE_S)
            await connector.open_async(pool)
            await _tidy(app)
            tidying = asyncio.create_task(_keep_tidy(app), name="run-queue-tidy")
            try:
                await app.run_worker_async(
                    queues=[QUEUE],
                    name="dragoman",
                    concurrency=concurrency,
                    delete_jobs="always",
                    install_signal_handlers=False,
                    fetch_job_polling_interval=_LOOK_EVERY_S,
                    # Runs in hand are not the fetcher's: they outlive it, whether it is stopped or cut off.
                    shutdown_graceful_timeout=0,
                    stalled_worker_timeout=_STALLED_S,
                )
            finally:
                await _ended(tidying)
        except (ProcrastinateException, psycopg.Error, PoolTimeout, OSError) as error:
            logger.warning("fetching runs is interrupted (%s)", type(error).__name__)
        finally:
            await pool.close()
        if not self._draining:
            await asyncio.sleep(_RETRY_S)


async def _set_out(connection: psycopg.AsyncConnection) -> None:
    """Each of the consumer's connections sees the queue's schema, and acts as the system."""
    await connection.execute(_SETTING_OUT)
    await connection.commit()


async def _keep_tidy(app: App) -> None:
    """Forget now and then what vanished consumers had fetched, until cancelled."""
    while True:
        await asyncio.sleep(_TIDY_EVERY_S)
        try:
            await _tidy(app)
        except (ProcrastinateException, psycopg.Error, PoolTimeout, OSError) as error:
            # Others tidy as well, and may be faster.
            logger.info("the run queue could not be tidied (%s)", type(error).__name__)


async def _tidy(app: App) -> None:
    """Their jobs only: the sweep rings for the runs, by their leases."""
    for job in await app.job_manager.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=_STALLED_S):
        if job.id is not None:
            await app.job_manager.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)


def _cancel(task: "asyncio.Task[None]") -> None:
    """Once: a second time would cut short how the library's worker winds up after the first."""
    if not task.cancelling():
        task.cancel()


async def _ended(task: "asyncio.Task[None]") -> None:
    _cancel(task)
    await asyncio.wait((task,))
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("fetching runs failed", exc_info=error)
