"""Threads that execute units of work, each over its own connection to SQLite."""

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import URL, Connection, NullPool, create_engine
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from infrastructure.persistence.engine.database import Job, resolve_all, translated

logger = logging.getLogger(__name__)

_PAGE_CACHE_KIB = 16 * 1024
_BUSY_TIMEOUT_S = 5
"""How long a statement waits for another process."""

Serve = Callable[[Connection, "list[Job[Any]]"], None]
"""Executes jobs in the calling thread. What it raises fails all of them."""


Jobs = queue.SimpleQueue["Job[Any] | None"]
"""None ends the thread that takes it."""


class Connections:
    """Opens connections with their pragmas."""

    def __init__(
        self,
        path: Path,
        *,
        mode: Literal["rw", "ro"],
        pragmas: tuple[str, ...],
    ) -> None:
        # Transactions are ours: the driver begins none (AUTOCOMMIT), so BEGIN IMMEDIATE and
        # savepoints hold.
        self._engine = create_engine(
            URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": mode, "uri": "true"}),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
            connect_args={"timeout": _BUSY_TIMEOUT_S},
        )
        self._pragmas = (*pragmas, f"cache_size = -{_PAGE_CACHE_KIB}", "temp_store = MEMORY")

    def open(self) -> Connection:
        """A new connection."""
        connection = self._engine.connect()
        raw = raw_of(connection)
        for pragma in self._pragmas:
            raw.execute(f"PRAGMA {pragma}").close()
        return connection

    def dispose(self) -> None:
        """Forget the engine."""
        self._engine.dispose()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """What a thread does once there was nothing to serve for `after_s`, and again until it returns
    True."""

    after_s: float
    act: Callable[[Connection], bool]


class ServingThread(threading.Thread):
    """Serves jobs from a queue in batches until it takes None. Once the queue was empty for a
    while, it takes its rest.

    After an error of the connection its batch fails, and the next batch gets a new connection.
    """

    def __init__(
        self,
        name: str,
        connections: Connections,
        serve: Serve,
        *,
        jobs: "Jobs | None" = None,
        max_batch: int = 1,
        rest: Rest | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._connections = connections
        self._serve = serve
        self._max_batch = max_batch
        self._rest = rest
        self._jobs: Jobs = queue.SimpleQueue() if jobs is None else jobs
        self._connection: Connection | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()

    def put(self, job: Job[Any] | None) -> None:
        """Serve the job after those that wait; None ends a thread that serves the queue."""
        self._jobs.put(job)

    async def begin(self) -> None:
        """Start, and wait until the connection is open. Raises what opening raises, as callers see
        it."""
        self.start()
        try:
            await self._ready
        except Exception as error:
            raise translated(error) from error

    def run(self) -> None:
        """Serve; `start` calls this."""
        try:
            self._connected()
        except Exception as error:  # noqa: BLE001  # for the caller of `begin`
            self._disconnect()
            self._loop.call_soon_threadsafe(self._ready.set_exception, wrapped(error))
            return
        self._loop.call_soon_threadsafe(self._ready.set_result, None)
        more = True
        while more:
            batch, more = self._next_batch()
            if batch:
                self._answer(batch)
        self._disconnect()
        self._connections.dispose()

    def _answer(self, batch: "list[Job[Any]]") -> None:
        try:
            self._serve(self._connected(), batch)
        except Exception as error:  # noqa: BLE001  # for the units' callers
            # Nothing of the batch was committed, and closing the connection undoes what it began.
            self._disconnect()
            for job in batch:
                if not job.failed:
                    job.fail(wrapped(error))
        resolve_all(self._loop, batch)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._connections.open()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except Exception:
            logger.exception("a connection to the database could not be closed")

    def _next_batch(self) -> "tuple[list[Job[Any]], bool]":
        """The waiting jobs, at least one, and whether more may come."""
        batch: list[Job[Any]] = []
        job = self._next_job()
        while job is not None:
            batch.append(job)
            if len(batch) >= self._max_batch:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False

    def _next_job(self) -> "Job[Any] | None":
        rest = self._rest
        while rest is not None:
            try:
                return self._jobs.get(timeout=rest.after_s)
            except queue.Empty:
                if self._has_rested(rest):
                    break
        return self._jobs.get()

    def _has_rested(self, rest: Rest) -> bool:
        try:
            return rest.act(self._connected())
        except Exception:
            logger.exception("the database could not be tidied at rest")
            self._disconnect()
            return True


async def end(*threads: ServingThread) -> None:
    """Serve the waiting jobs of threads that share a queue, then close their connections."""
    for thread in threads:
        thread.put(None)
    for thread in threads:
        await asyncio.to_thread(thread.join)


def raw_of(connection: Connection) -> sqlite3.Connection:
    """The driver's connection."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, sqlite3.Connection):
        raise TypeError(f"{raw!r} is not a connection to SQLite")
    return raw


def wrapped(error: Exception) -> DBAPIError:
    """The driver's error as SQLAlchemy raises it."""
    if isinstance(error, DBAPIError):
        return error
    family = IntegrityError if isinstance(error, sqlite3.IntegrityError) else OperationalError
    return family(None, None, error)
