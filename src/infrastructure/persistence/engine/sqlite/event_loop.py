"""Small units of work on SQLite, stored on the event loop instead of by the thread that writes. See ADR 0027."""

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from sqlalchemy import Connection

from infrastructure.persistence.engine.database import Job
from infrastructure.persistence.engine.sqlite.batch import raw_of, store, wrapped

logger = logging.getLogger(__name__)

BUSY_TIMEOUT_MS = 5_000
CHECKPOINT_PAGES = 4_000
"""How much is written before it is folded into the file: most pages change many times meanwhile, and are folded once."""

_FOLD_AFTER = 1_000
"""Units stored on the event loop after which the log is folded: each writes some ten pages."""
SLOW_COMMIT_S = 0.02
"""A commit that waits longer than this, without the time in which it computes, moves writes to the writer thread."""
_LEFT_ALONE_S = 1.0
"""How long writes stay with the writer thread after a slow commit."""
_MANY, _GATHER_S = 4, 0.002
"""Where so many were stored together, the next ones wait so long for company: steps of several runs write many of the same
pages. With fewer under way, what one of them waited would be felt."""
_AT_ONCE = 16
"""Units that hold the event loop together: a few milliseconds."""


class Writer(Protocol):
    """Whose connection is used."""

    at_work: threading.Lock
    """Held by whoever uses the connection."""

    @property
    def open_connection(self) -> Connection | None:
        """For whoever holds `at_work`; None while it is yet to be opened again."""
        ...


class CommitsHere:
    """Small units of work, run and committed on the event loop over the writer's own connection, while the writer has nothing to
    do: two threads that hand a row to each other cost several times what storing it does. `leave` hands a unit to the thread.

    Nothing here waits for the disk: the log is folded into the file by others, whom `fold` wakes; after a commit that was
    slow all the same, it is left to the thread for a while.
    """

    def __init__(
        self,
        writer: Writer,
        *,
        fold: Callable[[], None],
        leave: Callable[[Job[Any]], None],
        slow_commit_s: float = SLOW_COMMIT_S,
    ) -> None:
        self._writer = writer
        self._fold = fold
        self._leave = leave
        self._slow_commit_s = slow_commit_s
        self._loop = asyncio.get_running_loop()
        self._gathered: list[Job[Any]] = []
        self._are_many = False
        self._unfolded = 0
        self._hurried: sqlite3.Connection | None = None
        self._not_before = 0.0
        self.commits = 0
        """Transactions committed here so far."""

    def committed(self, job: Job[Any]) -> bool:
        """Whether the unit was run and its caller told; False if that is for the thread."""
        return self._stored([job])

    def gather(self, job: Job[Any]) -> None:
        """Store the unit soon, with others: at the end of this turn of the event loop, or a moment later while many come."""
        self._gathered.append(job)
        if len(self._gathered) > 1:
            return
        if self._are_many:
            self._loop.call_later(_GATHER_S, self._store_gathered)
        else:
            self._loop.call_soon(self._store_gathered)

    def looked_up(self, job: Job[Any]) -> bool:
        """Whether a unit that only reads was run and its caller told; False if that is for another thread. The writer's connection
        has the pages at hand that were just written: one that only reads would have to fetch them from the log."""
        began, computed = time.monotonic(), time.thread_time()
        if began < self._not_before or not self._writer.at_work.acquire(blocking=False):
            return False
        try:
            connection = self._writer.open_connection
            if connection is None or not _looked(job, connection, self._hurry(raw_of(connection))):
                return False
        finally:
            self._writer.at_work.release()
        self._leave_alone_if_slow(began, computed)
        job.resolve()
        return True

    def stop(self) -> None:
        """Leave what is gathered to the thread."""
        gathered, self._gathered = self._gathered, []
        for job in gathered:
            self._leave(job)

    def hand_over(self, raw: sqlite3.Connection) -> None:
        """In the thread, before a transaction: let the connection wait again, for other processes and for the disk."""
        if self._hurried is raw:
            self._hurried = None
            raw.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}").close()
            raw.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}").close()

    def fold_if_due(self, raw: sqlite3.Connection) -> None:
        """In the thread, after a transaction: fold what is left of what was committed here, unless somebody is at it; what the
        thread commits is folded as it does so."""
        if self._unfolded >= _FOLD_AFTER:
            try:
                (is_busy, _, _) = raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error:  # what was committed stays committed
                logger.warning("the write-ahead log could not be folded", exc_info=True)
                is_busy = False
            if not is_busy:
                self._unfolded = 0

    def _store_gathered(self) -> None:
        batch, self._gathered = self._gathered[:_AT_ONCE], self._gathered[_AT_ONCE:]
        if self._gathered:
            self._loop.call_soon(self._store_gathered)
        if not batch:  # stopped meanwhile
            return
        self._are_many = len(batch) >= _MANY
        if not self._stored(batch):
            for job in batch:
                self._leave(job)

    def _stored(self, batch: list[Job[Any]]) -> bool:
        began, computed = time.monotonic(), time.thread_time()
        if began < self._not_before or not self._writer.at_work.acquire(blocking=False):
            return False
        is_due = False
        try:
            connection = self._writer.open_connection
            if connection is None or not self._begun(raw_of(connection)):
                return False
            if store(batch, connection, raw_of(connection)):
                self.commits += 1
                before, self._unfolded = self._unfolded, self._unfolded + len(batch)
                is_due = before // _FOLD_AFTER < self._unfolded // _FOLD_AFTER
        except Exception as error:  # noqa: BLE001  # it goes to the units' callers; the thread connects anew, as it cannot begin
            for job in batch:
                if not job.failed:
                    job.fail(wrapped(error))
        finally:
            self._writer.at_work.release()
        self._leave_alone_if_slow(began, computed)
        if is_due:
            self._fold()
        for job in batch:
            job.resolve()
        return True

    def _begun(self, raw: sqlite3.Connection) -> bool:
        """Whether a transaction was; not while another process writes, which the thread is the one to wait for."""
        try:
            self._hurry(raw).execute("BEGIN IMMEDIATE").close()
        except sqlite3.Error:
            return False
        return True

    def _hurry(self, raw: sqlite3.Connection) -> sqlite3.Connection:
        """The connection, waiting for nobody and leaving the log as it is."""
        if self._hurried is not raw:
            self._hurried = raw
            raw.execute("PRAGMA busy_timeout = 0").close()
            raw.execute("PRAGMA wal_autocheckpoint = 0").close()
        return raw

    def _leave_alone_if_slow(self, began: float, computed: float) -> None:
        ended = time.monotonic()
        if ended - began - (time.thread_time() - computed) > self._slow_commit_s:
            self._not_before = ended + _LEFT_ALONE_S


def _looked(job: Job[Any], connection: Connection, raw: sqlite3.Connection) -> bool:
    """Whether the unit was run, on one snapshot; what it raises it will raise elsewhere, too."""
    try:
        raw.execute("BEGIN").close()
        job.execute(connection)
    except Exception:  # noqa: BLE001  # another thread tells its caller
        return False
    finally:
        if raw.in_transaction:
            raw.execute("ROLLBACK").close()
    return True
