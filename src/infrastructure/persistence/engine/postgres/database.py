"""PostgreSQL through psycopg: a transaction per unit, as the role and for the organization of its
scope; units in stages share transactions. See ADR 0002, 0011 and 0030."""

import asyncio
import functools
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from application.system.deadline import Deadline
from domain.errors import ServiceError
from domain.ids import OrganizationId
from infrastructure.persistence.engine.database import SYSTEM, Job, Scope, StorageAway, Unit, stopped, unusable
from infrastructure.persistence.engine.postgres.group import GroupedWrites
from infrastructure.persistence.engine.postgres.plans import PLANS_BY_KEYS
from infrastructure.persistence.engine.postgres.roles import (
    ORGANIZATION_SETTING,
    REQUEST_ROLE,
    SYSTEM_ROLE,
    roles_refused,
)
from infrastructure.persistence.engine.postgres.url import driver_url, library_url
from infrastructure.persistence.engine.retry_deadline import retry_s
from infrastructure.persistence.engine.staged import ByKeys, Staged

T = TypeVar("T")

logger = logging.getLogger(__name__)

_ATTEMPTS = 3
_AGAIN_S = 0.02
_FIRST_PAUSE_S, _LAST_PAUSE_S = 0.1, 1.0
_RETRYABLE = frozenset({"40001", "40P01"})
"""serialization_failure and deadlock_detected (PostgreSQL, Appendix A): the server asks for the
transaction again."""
_SESSION_ENDED = frozenset({"57P01", "57P02", "57P05", "25P03"})
"""admin_shutdown, crash_shutdown, idle_session_timeout, idle_in_transaction_session_timeout: the
server ends the session with these words, which may be read a moment before the end of its socket
is."""
_LOCKED = "55P03"
"""lock_not_available: a read waited for a lock longer than `_LOCK_WAIT_S`, or a write longer than
it says itself."""
_LOCK_WAIT_S = 5.0
"""How long a read waits for a locked table. A request that waits longer is of no use to its
client."""
_READ_WAIT_S = 10.0
"""How long a read of a request waits in all: threads may be waiting for locks."""
_BUSY = "The database did not answer in time."
_ROLE_REFUSED = frozenset({"22023", "42501"})
"""invalid_parameter_value and insufficient_privilege: of a role that is not there, and of one that
may not be taken."""


@dataclass(frozen=True, kw_only=True)
class _Opening:
    """How a transaction begins. `number` is its number, known before its commit, so that a commit
    without an answer can be looked up."""

    begin: str
    number: str
    more: sql.Composable

    def statements(self, scope: Scope, connection: psycopg.Connection) -> bytes:
        """All in one message to the server, so that they cost no waiting. Only the organization is
        put together each time."""
        if scope is SYSTEM:
            return self._of_system
        before, after = self._around_organization
        return before + sql.Literal(scope).as_bytes(connection) + after

    @cached_property
    def _of_system(self) -> bytes:
        return self._for(SYSTEM_ROLE, sql.Literal("")).as_bytes()

    @cached_property
    def _around_organization(self) -> tuple[bytes, bytes]:
        before, _, after = self._for(REQUEST_ROLE, sql.Placeholder()).as_bytes().partition(sql.Placeholder().as_bytes())
        return before, after

    def _for(self, role: str, organization: sql.Composable) -> sql.Composed:
        return _OPENING.format(
            begin=sql.SQL(self.begin),
            number=sql.SQL(self.number),
            role=role,
            setting=ORGANIZATION_SETTING,
            organization=organization,
            more=self.more,
        )


# Each statement sees what was committed before it, also by those whose locks the unit waited for.
_WRITING = _Opening(
    begin="BEGIN ISOLATION LEVEL READ COMMITTED", number="CAST(pg_current_xact_id() AS text)", more=sql.SQL("")
)


def _reading(lock_wait_s: float = _LOCK_WAIT_S) -> _Opening:
    """One snapshot for all statements of a unit, as SQLite gives it."""
    more = sql.SQL(", set_config('lock_timeout', {}, true)").format(str(round(lock_wait_s * 1000)))
    return _Opening(begin="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", number="NULL", more=more)


def _by_keys(opening: _Opening) -> _Opening:
    settings = (sql.SQL(", set_config({}, {}, true)").format(*setting) for setting in PLANS_BY_KEYS.items())
    return replace(opening, more=sql.Composed([opening.more, *settings]))


_WRITING_BY_KEYS = _by_keys(_WRITING)
_STATUS = text("SELECT pg_xact_status(CAST(CAST(:transaction AS text) AS xid8))")
# Role and organization last as long as the transaction.
_OPENING = sql.SQL(
    "{begin}; SELECT set_config('role', {role}, true), set_config({setting}, {organization}, true), {number}{more}"
)


class PostgresDatabase:
    """The `Database` interface over PostgreSQL. `connections` bounds the pool and its threads;
    groups of units in stages use one connection more. A read waits `lock_wait_s` for a locked
    table."""

    def __init__(self, url: str, *, connections: int = 8, lock_wait_s: float = _LOCK_WAIT_S) -> None:
        self._reading = _reading(lock_wait_s)
        self._reading_by_keys = _by_keys(self._reading)
        self._url = driver_url(url)
        self._library_url = library_url(url)
        self._connections = connections
        self._engine: Engine | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._groups: GroupedWrites | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Connect once, so that a wrong address and missing roles fail here. Raises UNAVAILABLE
        `database_roles_missing`."""
        if self._stopping is not None:
            await self._stopping
        # Transactions are ours alone: the driver begins none (AUTOCOMMIT), it only ends them.
        engine = create_engine(
            self._url,
            pool_size=self._connections,
            max_overflow=0,
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
        )
        try:
            await asyncio.to_thread(_probe, engine)
        except DBAPIError as error:
            engine.dispose()
            raise _refused(error) from error
        self._engine = engine
        self._threads = ThreadPoolExecutor(self._connections, thread_name_prefix="postgres")
        self._groups = GroupedWrites(self._library_url, dialect=engine.dialect, alone=self._write_alone)

    async def stop(self) -> None:
        """Commit the waiting units, then close the connections. A cancelled `stop` is finished all
        the same."""
        if self._groups is not None:
            self._stopping = asyncio.create_task(self._finish(self._groups), name="postgres-stop")
            self._groups = None
        if self._stopping is not None:
            await asyncio.shield(self._stopping)

    async def _finish(self, groups: GroupedWrites) -> None:
        await groups.stop()
        threads, engine = self._threads, self._engine
        self._threads = self._engine = None
        if threads is not None and engine is not None:
            await asyncio.to_thread(threads.shutdown)
            engine.dispose()

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope,
        after_commit: Callable[[T], None] | None = None,
    ) -> T:
        """Run a unit in a transaction."""
        waiting = _Waiting(retry_s())
        while True:
            job = Job(unit, after_commit)
            try:
                if isinstance(unit, Staged) and self._groups is not None:
                    self._groups.put(scope, job, unit)
                    return await job.wait()
                return await self._submitted(_WRITING_BY_KEYS if isinstance(unit, ByKeys) else _WRITING, scope, job)
            except StorageAway as away:
                if away.in_doubt is None:
                    await waiting.rest(away)
                elif await self._is_committed(away, away.in_doubt, waiting):
                    if after_commit is not None:
                        after_commit(job.result)
                    return job.result

    async def _is_committed(self, away: StorageAway, transaction: str, waiting: "_Waiting") -> bool:
        """The outcome of a transaction whose commit was not answered (PostgreSQL, 9.27.10
        pg_xact_status). Raises `away` where the server cannot say."""

        def ask(connection: Connection) -> object:
            return connection.execute(_STATUS, {"transaction": transaction}).scalar_one()

        while True:
            try:
                status = await self._submitted(self._reading, SYSTEM, Job(ask))
            except StorageAway:
                status = "in progress"
            except ServiceError:
                raise away from None
            if status in ("committed", "aborted"):
                return status == "committed"
            if status is None:  # too long ago
                raise away
            # The old session may not have ended yet.
            await waiting.rest(away)

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        """Run a unit on a snapshot of what is committed. Waits for locks a bounded time."""
        opening = self._reading_by_keys if isinstance(unit, ByKeys) else self._reading
        patience_s = retry_s()
        waiting = _Waiting(patience_s)
        while True:
            deadline = Deadline(None if patience_s else asyncio.get_running_loop().time() + _READ_WAIT_S)
            try:
                with deadline:
                    return await self._submitted(opening, scope, Job(unit))
            except TimeoutError:
                if not deadline.expired():
                    raise
                raise StorageAway(_BUSY) from None
            except StorageAway as away:
                await waiting.rest(away)

    def obstacle(self) -> str | None:
        """Nothing is known without asking the server."""
        return None

    def _write_alone(self, scope: Scope, job: Job[Any]) -> None:
        if self._engine is None or self._threads is None:
            job.fail(stopped())
            job.resolve()
            return
        self._threads.submit(functools.partial(_work, self._engine, _WRITING_BY_KEYS, scope, job))

    async def _submitted(self, begin: _Opening, scope: Scope, job: Job[T]) -> T:
        if self._engine is None or self._threads is None:
            raise stopped()
        self._threads.submit(functools.partial(_work, self._engine, begin, scope, job))
        return await job.wait()


class _Waiting:
    """Pauses between attempts while the database is away, up to `retry_s` in all."""

    def __init__(self, retry_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + retry_s
        self._pause_s = _FIRST_PAUSE_S
        self._retry_s = retry_s

    async def rest(self, away: StorageAway) -> None:
        """A pause, longer each time. Raises `away` once there is no time left."""
        if self._loop.time() + self._pause_s > self._until:
            if self._retry_s:
                logger.warning(
                    "retry deadline passed; the database is still unavailable", extra={"seconds": self._retry_s}
                )
            raise away
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, _LAST_PAUSE_S)


def _work(engine: Engine, begin: _Opening, scope: Scope, job: Job[T]) -> None:
    if not job.withdrawn:
        try:
            _run(engine, begin, scope, job)
        except Exception as error:  # noqa: BLE001  # it goes to the unit's caller
            job.fail(error)
    job.post()


def _run(engine: Engine, begin: _Opening, scope: Scope, job: Job[T]) -> None:
    """Run and commit. A unit that certainly had no effect is run again: the victim of a deadlock,
    or a connection that was cut before the commit. Raises StorageAway."""
    for attempt in range(1, _ATTEMPTS + 1):
        if attempt > 1:
            time.sleep(_AGAIN_S * attempt)  # the transaction that won the deadlock needs a moment to end
        with _connected(engine) as connection:
            transaction = connection.begin()
            in_doubt = None
            try:
                number = _open(connection, begin, scope)
                job.execute(connection)
                in_doubt = number
                transaction.commit()
            except DBAPIError as error:
                cut = error.connection_invalidated or _sqlstate(error) in _SESSION_ENDED
                if cut and not connection.invalidated:
                    # SQLAlchemy does not know of it yet; a rollback would fail.
                    connection.invalidate(error)
                if _sqlstate(error) == _LOCKED:
                    logger.warning("a transaction waited too long for a lock")
                    raise StorageAway(_BUSY) from error
                if in_doubt is None and attempt < _ATTEMPTS and (cut or _sqlstate(error) in _RETRYABLE):
                    continue
                if cut:
                    raise StorageAway(in_doubt=in_doubt) from error
                raise
            return


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    pool = engine.pool
    try:
        connection = engine.connect()
    except DBAPIError as error:
        # Without a trace: every unit that waits logs the same.
        logger.warning("the database cannot be reached (%s)", type(error.orig).__name__)
        raise StorageAway from error
    with connection:
        try:
            yield connection
        finally:
            if engine.pool is not pool and not connection.invalidated:
                # Its pool was disposed of meanwhile, so the connection is closed.
                connection.detach()


def _open(connection: Connection, begin: _Opening, scope: Scope) -> str | None:
    """Begin a transaction that works for `scope`; its number if it writes."""
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError(f"{raw!r} is not a connection to PostgreSQL")
    try:
        # Several statements at once cannot be prepared.
        with raw.execute(begin.statements(scope, raw), prepare=False) as cursor:
            cursor.nextset()
            opened = cursor.fetchone()
    except psycopg.Error as error:
        if raw.closed:
            connection.invalidate(error)
            # The other pooled connections were most likely cut with it, and would use up all
            # attempts.
            connection.engine.dispose()
        # As SQLAlchemy raises it elsewhere.
        raise DBAPIError(None, None, error, connection_invalidated=raw.closed) from error
    return None if opened is None else opened[2]


def _sqlstate(error: DBAPIError) -> str | None:
    state = getattr(error.orig, "sqlstate", None)
    return state if isinstance(state, str) else None


def _probe(engine: Engine) -> None:
    for scope in (SYSTEM, OrganizationId("")):
        with engine.connect() as connection, connection.begin():
            _open(connection, _reading(), scope)


def _refused(error: DBAPIError) -> Exception:
    if _sqlstate(error) not in _ROLE_REFUSED:
        return unusable(error)
    return roles_refused(
        f"The database user may not act as {REQUEST_ROLE} and {SYSTEM_ROLE}. Migrate the database, then let an"
        f" administrator `GRANT {REQUEST_ROLE}, {SYSTEM_ROLE}` to that user."
    )
