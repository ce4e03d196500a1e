"""One session of a consumer with the queue: it is registered as a worker, is notified of
submissions, and takes jobs.

Above: `ProcrastinateRunQueue`. Below: Procrastinate's schema, through its job manager and its SQL
functions.
"""

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
from infrastructure.persistence.engine.postgres.queue_schema import QUEUE, SCHEMA, STALLED_S
from infrastructure.persistence.engine.postgres.roles import SYSTEM_ROLE

logger = logging.getLogger(__name__)

LOST = (ProcrastinateException, psycopg.Error, OSError)
"""The exceptions that end a session whose connections are lost."""
BEAT_EVERY_S = 10.0
_TIDY_EVERY_BEATS = 6
_CONNECT_S = 5
_CHECK_EVERY_S = 30.0
"""How often a silent listening connection is tested."""
_APPLICATION = "dragoman-queue"

_setting_out = sql.SQL("SELECT set_config('search_path', {schema}, false), set_config('role', {role}, false)").format(
    schema=SCHEMA, role=SYSTEM_ROLE
)
_listen = sql.SQL("; ").join(
    sql.SQL("LISTEN {}").format(sql.Identifier(channel)) for channel in get_channel_for_queues([QUEUE])
)
_take = sql.SQL("SELECT job_id, run_id FROM take_runs(%s, %s, %s, %s)").as_bytes()
_tidy_shares = sql.SQL("SELECT tidy_shares()").as_bytes()


@dataclass(frozen=True, slots=True)
class Job:
    """A submitted run, taken from the queue. The queue keeps the job until it is reported as
    ended."""

    id: int
    run_id: RunId


class OneConnection(BaseAsyncConnector):
    """Procrastinate's statements on an existing connection; the library would open a pool."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        await self._connection.execute(query.encode(), arguments)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        [row] = await self.execute_query_all_async(query, **arguments)
        return row

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        async with self._connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), arguments)
            return await cursor.fetchall()


class QueueSession:
    def __init__(self, *, connection: AsyncConnection, jobs: JobManager, worker_id: int) -> None:
        self._connection = connection
        self._jobs = jobs
        self._worker_id = worker_id

    async def take(self, places: int, *, spare: int = 0, ended: Sequence[int] = ()) -> list[Job]:
        """Remove ended jobs and take at most `places` others, in the fair order, and `spare` ones
        of organizations without a job here, in one round trip. Raises one of LOST."""
        found = await self._connection.execute(_take, (self._worker_id, list(ended), places, spare))
        return [Job(job_id, RunId(run_id)) for job_id, run_id in await found.fetchall()]

    async def leave(self, *, ended: Sequence[int]) -> None:
        """Remove ended jobs and unregister the worker. Raises one of LOST."""
        await self.take(0, ended=ended)
        await self._jobs.unregister_worker(self._worker_id)

    async def keep_alive(self) -> None:
        """Send heartbeats, and remove the jobs of lost consumers, until cancelled. Raises one of
        LOST."""
        while True:
            for _ in range(_TIDY_EVERY_BEATS):
                await asyncio.sleep(BEAT_EVERY_S)
                await self._jobs.update_heartbeat(self._worker_id)
            await self.tidy()

    async def tidy(self) -> None:
        """Remove the jobs of lost consumers, and shares that have no effect. Run recovery signals
        the runs when the leases expire."""
        await self._jobs.prune_stalled_workers(STALLED_S)
        for job in await self._jobs.get_stalled_jobs(queue=QUEUE, seconds_since_heartbeat=STALLED_S):
            if job.id is not None:
                # Other consumers do the same and may be faster.
                with suppress(ProcrastinateException):
                    await self._jobs.finish_job_by_id_async(job.id, Status.FAILED, delete_job=True)
        await self._connection.execute(_tidy_shares)


@asynccontextmanager
async def queue_session(url: str, *, signalled: asyncio.Event, attended: asyncio.Event) -> AsyncIterator[QueueSession]:
    """A registered worker of the queue. It sets `signalled` when there may be jobs to take;
    `attended` is set while it listens.

    Raises one of LOST, perhaps in a group, also from the body when a connection is lost.
    """
    async with await _connected(url) as connection:
        await connection.execute(_setting_out)
        jobs = JobManager(OneConnection(connection))
        session = QueueSession(connection=connection, jobs=jobs, worker_id=await jobs.register_worker())
        await session.tidy()
        async with asyncio.TaskGroup() as group:
            tasks = (
                group.create_task(_hear(url, signalled, attended), name="run-queue-listen"),
                group.create_task(session.keep_alive(), name="run-queue-alive"),
            )
            try:
                yield session
            finally:
                for task in tasks:
                    task.cancel()


async def _hear(url: str, signalled: asyncio.Event, attended: asyncio.Event) -> None:
    """Set `signalled` for every submission, until cancelled."""
    async with await _connected(url) as connection:
        await connection.execute(_listen)
        attended.set()
        # Submissions before this connection listened.
        signalled.set()
        try:
            while True:
                async for _ in connection.notifies(timeout=_CHECK_EVERY_S):
                    signalled.set()
                await connection.execute("SELECT 1")
        finally:
            attended.clear()


async def _connected(url: str) -> AsyncConnection:
    return await AsyncConnection.connect(
        url, autocommit=True, application_name=_APPLICATION, connect_timeout=_CONNECT_S
    )
