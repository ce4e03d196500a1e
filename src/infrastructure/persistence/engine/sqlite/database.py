"""SQLite in threads: one that writes, in batches, and a few that read. See ADR 0002."""

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine

from infrastructure.persistence.engine.database import Job, Scope, Unit, resolve_all, stopped, translated
from infrastructure.persistence.engine.sqlite.batch import raw_of, store, wrapped
from infrastructure.persistence.engine.sqlite.event_loop import (
    BUSY_TIMEOUT_MS,
    CHECKPOINT_PAGES,
    SLOW_COMMIT_S,
    CommitsHere,
)
from infrastructure.persistence.engine.sqlite.wal_checkpoint import LogFolding

logger = logging.getLogger(__name__)

T = TypeVar("T")
Synchronous = Literal["normal", "full"]

_PAGE_CACHE_KIB = 16 * 1024

_Jobs = queue.SimpleQueue["Job[object] | None"]
_Serve = Callable[[Connection, sqlite3.Connection, "list[Job[object]]"], None]


class SqliteDatabase:
    """The `Database` interface over one SQLite file in WAL mode.

    `synchronous` FULL survives a power cut, NORMAL a killed process. `readers` is the number of reading threads,
    `max_batch` the most units one transaction may hold. After a commit on the event loop that waits longer than
    `slow_commit_s`, the writer thread commits for a while.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous = "normal",
        readers: int = 2,
        max_batch: int = 256,
        slow_commit_s: float = SLOW_COMMIT_S,
    ) -> None:
        self._path = path
        self._synchronous = synchronous
        self._readers = readers
        self._max_batch = max_batch
        self._slow_commit_s = slow_commit_s
        self._writes: _Jobs = queue.SimpleQueue()
        self._reads: _Jobs = queue.SimpleQueue()
        self._threads: list[_ServingThread] = []
        self._open = False
        self._here: CommitsHere | None = None
        self._folding = LogFolding(path, finish=lambda: self._writes.put(Job(lambda connection: None)))
        self._commits = 0

    @property
    def commits(self) -> int:
        """Transactions committed so far."""
        return self._commits + (0 if self._here is None else self._here.commits)

    async def start(self) -> None:
        """Open the file, creating it if needed, and start the threads."""
        make_private(self._path)
        writer = _ServingThread(
            name="sqlite-writer",
            jobs=self._writes,
            serve=self._commit,
            engine=_engine(self._path, mode="rw"),
            pragmas=(
                "journal_mode = WAL",
                f"synchronous = {self._synchronous.upper()}",
                "foreign_keys = ON",
                f"wal_autocheckpoint = {CHECKPOINT_PAGES}",
            ),
            max_batch=self._max_batch,
        )
        # The writer comes first: it makes the write-ahead log that the readers need.
        await self._started(writer)
        if self._synchronous == "normal":  # with FULL each commit waits for the disk
            self._here = CommitsHere(
                writer, fold=self._folding.begin, leave=self._writes.put, slow_commit_s=self._slow_commit_s
            )
        for number in range(self._readers):
            await self._started(
                _ServingThread(
                    name=f"sqlite-reader-{number + 1}",
                    jobs=self._reads,
                    serve=_read,
                    engine=_engine(self._path, mode="ro"),
                    pragmas=("query_only = ON",),
                    max_batch=1,
                )
            )
        self._open = True

    async def stop(self) -> None:
        """Commit what waits, then close the file."""
        self._open = False
        if self._here is not None:
            self._here.stop()
        await self._folding.stop()
        # The writer goes last: only a connection that may write can fold the write-ahead log into the file.
        for jobs, threads in ((self._reads, self._threads[1:]), (self._writes, self._threads[:1])):
            for _ in threads:
                jobs.put(None)
            for thread in threads:
                await asyncio.to_thread(thread.join)
        self._threads.clear()
        self._commits, self._here = self.commits, None

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope,
        after_commit: Callable[[T], None] | None = None,
        is_stored: Callable[[Connection, T], bool] | None = None,
        is_small: bool = False,
        may_gather: bool = False,
    ) -> T:
        """Run a unit in the next batch, or, if it is small and nobody writes, here: now, or with others in a moment."""
        job = Job(unit, after_commit)
        if is_small and self._open and self._here is not None:
            if may_gather:
                self._here.gather(job)
                return await job.wait()
            if self._here.committed(job):
                return await job.wait()
        return await self._submitted(self._writes, job)

    async def read(self, unit: Unit[T], *, scope: Scope, is_small: bool = False) -> T:
        """Run a unit on a snapshot of what is committed."""
        if is_small and self._open and self._here is not None and self._here.looked_up(job := Job(unit)):
            return await job.wait()
        return await self._submitted(self._reads, Job(unit))

    async def _submitted(self, jobs: _Jobs, job: Job[T]) -> T:
        if not self._open:
            raise stopped()
        jobs.put(job)  # type: ignore[arg-type]  # a queue of jobs of any result
        return await job.wait()

    async def _started(self, thread: "_ServingThread") -> None:
        thread.start()
        try:
            await thread.wait_ready()
        except Exception as error:
            await self.stop()
            raise translated(error) from error
        self._threads.append(thread)

    def _commit(self, connection: Connection, raw: sqlite3.Connection, batch: "list[Job[object]]") -> None:
        """One transaction for the whole batch, a savepoint for each unit: a unit fails alone, a commit for all."""
        if self._here is not None:
            self._here.hand_over(raw)
        raw.execute("BEGIN IMMEDIATE").close()
        if store(batch, connection, raw):
            self._commits += 1
            if self._here is not None:
                self._here.fold_if_due(raw)


class _ServingThread(threading.Thread):
    """A thread with a connection that serves jobs from a queue, in batches, until it finds None there.

    Nothing ends it before: a batch whose connection fails is answered, and the next one is served on a new connection.
    """

    def __init__(
        self, *, name: str, jobs: _Jobs, serve: _Serve, engine: Engine, pragmas: tuple[str, ...], max_batch: int
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._jobs = jobs
        self._serve = serve
        self._engine = engine
        self._pragmas = (*pragmas, f"cache_size = -{_PAGE_CACHE_KIB}", "temp_store = MEMORY")
        self._max_batch = max_batch
        self._connection: Connection | None = None
        self.at_work = threading.Lock()
        """Held by whoever uses the connection."""
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()

    async def wait_ready(self) -> None:
        """Until the connection is open. Raises what opening it raised."""
        await self._ready

    def run(self) -> None:
        """Serve. Not to be called: `start` does."""
        try:
            self._connected()
        except Exception as error:  # noqa: BLE001  # whatever it is, whoever starts us is told
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
        self._engine.dispose()

    @property
    def open_connection(self) -> Connection | None:
        """For whoever holds `at_work`; None while it is yet to be opened again."""
        return self._connection

    def _answer(self, batch: "list[Job[object]]") -> None:
        with self.at_work:
            try:
                connection = self._connected()
                self._serve(connection, raw_of(connection), batch)
            except Exception as error:  # noqa: BLE001  # it goes to the units' callers
                # Nothing of the batch was committed, and closing the connection undoes what it began.
                self._disconnect()
                for job in batch:
                    if not job.failed:
                        job.fail(wrapped(error))
        resolve_all(self._loop, batch)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            raw = raw_of(self._connection)
            for pragma in self._pragmas:
                raw.execute(f"PRAGMA {pragma}").close()
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        try:
            connection.close()
        except Exception:
            logger.exception("a connection to the database could not be closed")

    def _next_batch(self) -> "tuple[list[Job[object]], bool]":
        """What waits, at least one job, and whether more may come."""
        batch: list[Job[object]] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) >= self._max_batch:
                return batch, True
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return batch, True
        return batch, False


def _read(connection: Connection, raw: sqlite3.Connection, batch: "list[Job[object]]") -> None:
    """Each unit on one snapshot."""
    for job in batch:
        if job.withdrawn:
            continue
        raw.execute("BEGIN")
        try:
            job.execute(connection)
        except Exception as error:  # noqa: BLE001  # it goes to the unit's caller
            job.fail(error)
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")


def make_private(path: Path) -> None:
    """Create the file, if it is not there, for its owner alone; SQLite gives the files beside it the same mode."""
    with contextlib.suppress(OSError):  # whoever opens it next says what is wrong
        path.touch(mode=0o600)


def _engine(path: Path, *, mode: str) -> Engine:
    """Transactions are ours alone: the driver begins none (AUTOCOMMIT), so BEGIN IMMEDIATE and savepoints hold."""
    url = URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": mode, "uri": "true"})
    return create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        hide_parameters=True,
        # One thread at a time: whoever holds the serving thread's lock.
        connect_args={"timeout": BUSY_TIMEOUT_MS / 1000, "check_same_thread": False},
    )
