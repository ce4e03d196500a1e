"""PostgreSQL through psycopg: each unit of work in a transaction of its own, a bounded number at once. See ADR 0002."""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import DBAPIError

from infrastructure.persistence.database import Job, Unit, stopped, translated

T = TypeVar("T")

_ATTEMPTS = 3
_RETRYABLE = frozenset({"40001", "40P01"})
"""serialization_failure and deadlock_detected (PostgreSQL, Appendix A): the server asks for the transaction again."""


class PostgresDatabase:
    """The `Database` interface over PostgreSQL. `connections` bounds both the pool and the threads that use it."""

    def __init__(self, url: str, *, connections: int = 8) -> None:
        self._url = driver_url(url)
        self._connections = connections
        self._engine: Engine | None = None
        self._reading: Engine | None = None
        self._threads: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Connect once, so that a wrong address fails here."""
        engine = create_engine(self._url, pool_size=self._connections, max_overflow=0, hide_parameters=True)
        try:
            await asyncio.to_thread(_probe, engine)
        except DBAPIError as error:
            engine.dispose()
            raise translated(error) from error
        self._engine = engine
        # One snapshot for all statements of a unit, as SQLite gives it.
        self._reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._threads = ThreadPoolExecutor(self._connections, thread_name_prefix="postgres")

    async def stop(self) -> None:
        """Finish what waits, then close the connections."""
        threads, engine = self._threads, self._engine
        self._threads = self._engine = self._reading = None
        if threads is not None and engine is not None:
            await asyncio.to_thread(threads.shutdown)
            engine.dispose()

    async def write(self, unit: Unit[T], *, after_commit: Callable[[T], None] | None = None) -> T:
        """Run a unit in a transaction."""
        return await self._submitted(self._engine, Job(unit, after_commit))

    async def read(self, unit: Unit[T]) -> T:
        """Run a unit on a snapshot of what is committed."""
        return await self._submitted(self._reading, Job(unit))

    async def _submitted(self, engine: Engine | None, job: Job[T]) -> T:
        if engine is None or self._threads is None:
            raise stopped()
        self._threads.submit(functools.partial(_work, engine, job))
        return await job.wait()


def driver_url(url: str) -> URL:
    """`postgresql://…` as users write it, naming the driver."""
    return make_url(url).set(drivername="postgresql+psycopg")


def _work(engine: Engine, job: Job[T]) -> None:
    if not job.withdrawn:
        try:
            _run(engine, job)
        except Exception as error:  # noqa: BLE001  # it goes to the unit's caller
            job.fail(error)
    job.post()


def _run(engine: Engine, job: Job[T]) -> None:
    """Run and commit. What certainly had no effect is run again: a deadlock's victim, a lost connection before the
    commit."""
    for attempt in range(1, _ATTEMPTS + 1):
        with engine.connect() as connection:
            transaction = connection.begin()
            try:
                job.execute(connection)
            except DBAPIError as error:
                if attempt < _ATTEMPTS and (error.connection_invalidated or _sqlstate(error) in _RETRYABLE):
                    continue
                raise
            transaction.commit()
            return


def _sqlstate(error: DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None)
    return state if isinstance(state, str) else None


def _probe(engine: Engine) -> None:
    connection: Connection
    with engine.connect() as connection:
        connection.exec_driver_sql("SELECT 1")
