"""The `Database` interface over one SQLite file in WAL mode: a thread that writes in groups, and
threads that read."""

import asyncio
import contextlib
import os
import queue
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from domain.errors import ServiceError
from infrastructure.persistence.engine.database import Job, Scope, Unit, stopped
from infrastructure.persistence.engine.sqlite.threads import (
    Connections,
    Jobs,
    Rest,
    ServingThread,
    end,
    raw_of,
    wrapped,
)

T = TypeVar("T")
Synchronous = Literal["normal", "full"]

_CHECKPOINT_PAGES: Final = 4_000
"""Pages in the WAL after which SQLite checkpoints it: most pages change many times meanwhile, and
are written once."""


_REST_S: Final = 5.0
"""Time without writes after which the WAL is written into the file and cut to nothing: it takes as
much of the disk as it once grew to."""
_MIN_FREE_BYTES: Final = 4 * 1024 * 1024
"""Free space of the disk below which the process is not ready: a commit of a large unit needs as
much."""
_OF_THE_DISK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
_FAILURE_S: Final = 5.0
"""How long a failed write is remembered: longer than a health check's interval, so that one reports
it."""


class SqliteDatabase:
    """`synchronous` FULL survives a power cut, NORMAL a killed process. `readers` is the number of
    reading threads, `max_batch` the most units that share a transaction."""

    def __init__(
        self,
        path: Path,
        *,
        synchronous: Synchronous = "normal",
        readers: int = 2,
        max_batch: int = 256,
        min_free_bytes: int = _MIN_FREE_BYTES,
        failure_s: float = _FAILURE_S,
        rest_s: float = _REST_S,
    ) -> None:
        self._path = path
        self._synchronous = synchronous
        self._reader_count = readers
        self._max_batch = max_batch
        self._writer: ServingThread | None = None
        self._readers: list[ServingThread] = []
        self._stopping: asyncio.Task[None] | None = None
        self._commits = 0
        self._min_free_bytes = min_free_bytes
        self._failure_s = failure_s
        self._failed_at: float | None = None
        self._rest = Rest(after_s=rest_s, act=_truncate_wal)

    @property
    def commits(self) -> int:
        """Transactions committed so far."""
        return self._commits

    async def start(self) -> None:
        """Open the file, creating it if needed, and start the threads."""
        if self._stopping is not None:
            await self._stopping
        make_private(self._path)
        pragmas = (
            "journal_mode = WAL",
            f"synchronous = {self._synchronous.upper()}",
            "foreign_keys = ON",
            f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        )
        connections = Connections(self._path, mode="rw", pragmas=pragmas)
        writer = ServingThread("sqlite-writer", connections, self._commit, max_batch=self._max_batch, rest=self._rest)
        await writer.begin()  # first: it creates the WAL that readers need
        readers: list[ServingThread] = []
        jobs: Jobs = queue.SimpleQueue()
        try:
            for number in range(1, self._reader_count + 1):
                connections = Connections(self._path, mode="ro", pragmas=("query_only = ON",))
                reader = ServingThread(f"sqlite-reader-{number}", connections, _read, jobs=jobs)
                await reader.begin()
                readers.append(reader)
        except BaseException:
            await _end(writer, readers)
            raise
        self._writer, self._readers = writer, readers

    async def stop(self) -> None:
        """Commit the waiting units, then close the file. A cancelled `stop` is finished all the
        same."""
        if self._writer is not None:
            self._stopping = asyncio.create_task(_end(self._writer, self._readers), name="sqlite-stop")
            self._writer, self._readers = None, []
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def write(self, unit: Unit[T], *, scope: Scope, after_commit: Callable[[T], None] | None = None) -> T:
        """Run a unit in the next transaction, with all units that wait."""
        if self._writer is None:
            raise stopped()
        job = Job(unit, after_commit)
        self._writer.put(job)
        try:
            return await job.wait()
        except ServiceError as error:
            if _is_of_the_disk(error.__cause__):
                self._failed_at = asyncio.get_running_loop().time()
            raise

    def obstacle(self) -> str | None:
        """A disk that is almost full, or a write that failed a moment ago. A small write may
        succeed on a disk that is too full for others."""
        with contextlib.suppress(OSError):
            disk = os.statvfs(self._path.parent)
            if disk.f_bavail * disk.f_frsize < self._min_free_bytes or (disk.f_files and not disk.f_favail):
                return "The disk of the database is full."
        if self._failed_at is not None and asyncio.get_running_loop().time() - self._failed_at < self._failure_s:
            return "A write to the database failed a moment ago."
        return None

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        """Run a unit on a snapshot of what is committed."""
        if not self._readers:
            raise stopped()
        job = Job(unit)
        self._readers[0].put(job)
        return await job.wait()

    def _commit(self, connection: Connection, group: "list[Job[Any]]") -> None:
        """One transaction. A unit that fails is undone alone; a commit fails for its group."""
        raw = raw_of(connection)
        wanted = [job for job in group if not job.withdrawn]
        raw.execute("BEGIN IMMEDIATE").close()
        try:
            if len(wanted) == 1:
                _execute_alone(wanted[0], connection, raw)
            elif not _executed_together(wanted, connection, raw):
                _execute_in_savepoints(wanted, connection, raw)
            if raw.in_transaction:
                raw.execute("COMMIT").close()
                self._commits += 1
        except sqlite3.Error as error:
            if raw.in_transaction:
                raw.execute("ROLLBACK").close()
            for job in group:
                if not job.failed:
                    job.fail(wrapped(error))


def _truncate_wal(connection: Connection) -> bool:
    """Whether the WAL was cut. It is not while a reader needs it, for which the writer does not
    wait."""
    raw = raw_of(connection)
    (timeout_ms,) = raw.execute("PRAGMA busy_timeout").fetchone()
    raw.execute("PRAGMA busy_timeout = 0").close()
    try:
        is_busy, *_ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        raw.execute(f"PRAGMA busy_timeout = {timeout_ms}").close()
    return not is_busy


async def _end(writer: ServingThread, readers: list[ServingThread]) -> None:
    # The writer goes last: only a connection that may write can checkpoint the WAL into the file.
    await end(*readers)
    await end(writer)


def _is_of_the_disk(cause: BaseException | None) -> bool:
    """Whether a driver's error says that the disk is full or fails."""
    found = cause.orig if isinstance(cause, DBAPIError) else cause
    code = getattr(found, "sqlite_errorcode", None)  # not all errors of the driver have one
    return isinstance(code, int) and code & 0xFF in _OF_THE_DISK


def _execute_alone(job: Job[Any], connection: Connection, raw: sqlite3.Connection) -> None:
    try:
        job.execute(connection)
    except Exception as error:  # noqa: BLE001  # for the unit's caller
        job.fail(error)
        if raw.in_transaction:  # after some errors (disk full) SQLite has undone it by itself
            raw.execute("ROLLBACK").close()


def _executed_together(group: "list[Job[Any]]", connection: Connection, raw: sqlite3.Connection) -> bool:
    """Whether no unit has failed. After a failure all are undone, and a new transaction has begun
    (ADR 0112)."""
    try:
        for job in group:
            job.execute(connection)
    except Exception:  # noqa: BLE001  # raised again where units are executed in savepoints
        if raw.in_transaction:
            raw.execute("ROLLBACK").close()
        raw.execute("BEGIN IMMEDIATE").close()
        return False
    return True


def _execute_in_savepoints(group: "list[Job[Any]]", connection: Connection, raw: sqlite3.Connection) -> None:
    for job in group:
        raw.execute("SAVEPOINT unit").close()
        try:
            job.execute(connection)
        except Exception as error:  # noqa: BLE001  # for the unit's caller
            job.fail(error)
            # After some errors (disk full) SQLite has undone the whole transaction: this raises,
            # and the group has failed.
            raw.execute("ROLLBACK TO unit").close()
        raw.execute("RELEASE unit").close()


def _read(connection: Connection, batch: "list[Job[Any]]") -> None:
    """Each unit on one snapshot."""
    raw = raw_of(connection)
    for job in batch:
        if job.withdrawn:
            continue
        raw.execute("BEGIN")
        try:
            job.execute(connection)
        except Exception as error:  # noqa: BLE001  # for the unit's caller
            job.fail(error)
        finally:
            if raw.in_transaction:
                raw.execute("ROLLBACK")


def make_private(path: Path) -> None:
    """Create the file, if it is not there, for its owner alone; SQLite gives the files beside it
    the same mode."""
    with contextlib.suppress(OSError):  # opening it reports what is wrong
        path.touch(mode=0o600)
