"""One life of a consumer's connections to the queue: it is registered there as a worker, hears at once of what is submitted,
and takes jobs. Above: `ProcrastinateRunQueue`. Below: Procrastinate's schema, by its job manager and its SQL functions."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ProcrastinateException
from procrastinate.jobs import Status
from procrastinate.manager import JobManager, get_channel_for_queues
from psycopg import AsyncConnection, sql
from psycopg.rows import dict_row

from domain.ids import RunId
from infrastructure.persistence.engine.postgres.queue_schema import QUEUE, SCHEMA
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE

logger = logging.getLogger(__name__)

CONNECTIONS = 2
"""One that asks, and one that listens."""
LOST = (ProcrastinateException, psycopg.Error, OSError)
"""What a session ends with when its connections do."""
BEAT_EVERY_S = 10.0
STALLED_S = 30.0
"""After how long without a heartbeat a consumer counts as gone, and what it had taken is forgotten."""
_TIDY_EVERY_BEATS = 6
_CONNECT_S = 5
_CHECK_EVERY_S = 30.0
"""How often a listening connection on which nothing was heard is tried."""
_APPLICATION = "dragoman-queue"

_setting_out = sql.SQL("SELECT set_config('search_path', {schema}, false), set_config('role', {role}, false)").format(
    schema=SCHEMA, role=SYSTEM_ROLE
)
_listen = sql.SQL("; ").join(
    sql.SQL("LISTEN {}").format(sql.Identifier(channel)) for channel in get_channel_for_queues([QUEUE])
)
_take = sql.SQL("SELECT job_id, run_id FROM take_runs(%s, %s, %s)").as_bytes()


@dataclass(frozen=True, slots=True)
class Job:
    """A run that somebody rang for, taken from the queue. The queue keeps the job until it is said to have ended."""

    id: int
    run_id: RunId


class OneConnection(BaseAsyncConnector):
    """The library's statements on a connection of ours; it brings a pool otherwise."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """Execute."""
        await self._connection.execute(query.encode(), arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        """The only row."""
        [row] = await self.execute_query_all_async(query, **arguments)
        return row

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """All rows."""
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), arguments)
            return await cursor.fetchall()


class QueueSession:
    """A registered worker."""

    def __init__(self, *, connection: AsyncConnection, jobs: JobManager, worker_id: int) -> None:
        self._connection = connection
        self._jobs = jobs
        self._worker_id = worker_id

    async def take(self, places: int, *, ended: Sequence[int] = ()) -> list[Job]:
        """Remove the jobs that have ended and take at most `places` others, oldest first, in one round trip. Fewer than
        `places` are all there are. Raises one of LOST."""
        found = await self._connection.execute(_take, (self._worker_id, list(ended), places))
        return [Job(job_id, RunId(run_id)) for job_id, run_id in await found.fetchall()]

    async def leave(self, *, ended: Sequence[int]) -> None:
        """Remove the jobs that have ended, and be no worker any more. Raises one of LOST."""
        await self.take(0, ended=ended)
        await self._jobs.unregister_worker(self._worker_id)

    async def keep_alive(self) -> None:
        """Say so now and then, and forget what vanished consumers had taken, until cancelled. Raises one of LOST."""
        while True:
            for _ in range(_TIDY_EVERY_BEATS):
                await asyncio.sleep(BEAT_EVERY_S)
                await self._jobs.update_heartbeat(self._worker_id)
            await self.tidy()

    async def tidy(self) -> None:
        """Forget the jobs of vanished consumers: the sweep rings for their runs, by their leases."""
        await self._jobs.prune_stalled_workers(STALLED_S)
        for job in await self._jobs.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_S):
            if job.id is not None:
                # Others tidy as well, and may be faster.
                with suppress(ProcrastinateException):
                    await self._jobs.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)


@asynccontextmanager
async def queue_session(url: str, *, rung: asyncio.Event, attended: asyncio.Event) -> AsyncIterator[QueueSession]:
    """A worker of the queue, which sets `rung` whenever there may be something to take; `attended` is set while it listens. Raises one of LOST, perhaps in
    a group, from the body too once a connection is lost."""
    async with await _connected(url) as connection:
        await connection.execute(_setting_out)
        jobs = JobManager(OneConnection(connection))
        session = QueueSession(connection=connection, jobs=jobs, worker_id=await jobs.register_worker())
        await session.tidy()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(_hear(url, rung, attended), name="run-queue-listen"),
                group.create_task(session.keep_alive(), name="run-queue-alive"),
            )
            try:
                yield session
            finally:
                for task in tasks:
                    task.cancel()


async def _hear(url: str, rung: asyncio.Event, attended: asyncio.Event) -> None:
    """Set `rung` for every submission from now on, until cancelled."""
    async with await _connected(url) as connection:
        await connection.execute(_listen)
        attended.set()
        # Whatever was submitted while nobody listened.
        rung.set()
        try:
            while True:
                async for _ in connection.notifies(timeout=_CHECK_EVERY_S):
                    rung.set()
                await connection.execute("SELECT 1")
        finally:
            attended.clear()


async def _connected(url: str) -> AsyncConnection:
    return await AsyncConnection.connect(
        url, autocommit=True, application_name=_APPLICATION, connect_timeout=_CONNECT_S
    )
