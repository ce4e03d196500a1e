"""What the stores need of a database: units of work, each a transaction, written once for both
databases."""

import asyncio
import enum
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Generic, Literal, Protocol, TypeVar, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from domain.errors import ErrorKind, ServiceError
from domain.ids import OrganizationId

_UNIQUE_VIOLATION = "23505"
"""PostgreSQL, Appendix A: unique_violation."""
_REFUSED_BY_POSTGRESQL = frozenset({"0A", "22", "42"})
"""PostgreSQL, Appendix A: feature not supported, data exception, syntax error or access rule
violation."""
_REFUSED_BY_SQLITE = frozenset(
    {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE}
)

RETRY_AFTER_S = "1"
"""`Retry-After` while the database is unavailable: most are back within seconds."""

logger = logging.getLogger(__name__)

T = TypeVar("T")
Unit = Callable[[Connection], T]
"""A unit of work: synchronous, nothing but statements on its connection, so that it may run in any
thread, and be run again when the database asks for that. Raising undoes all it did."""


class SystemScope(enum.Enum):
    """The type of SYSTEM."""

    SYSTEM = enum.auto()


SYSTEM: Final = SystemScope.SYSTEM
"""For work that is done before the organization is known, or for all of them: finding out whose key
a token is, claiming and recovering runs, sealing, timers, the rotation of secrets, the first start,
and what platform keys do."""

Scope = OrganizationId | Literal[SystemScope.SYSTEM]
"""For whom a unit works: it sees and changes nothing but what is this organization's. PostgreSQL
holds it to that, whatever its statements say (ADR 0011); on SQLite there are only the
statements."""


class Database(Protocol):
    """Runs units of work.

    A caller that is cancelled while it waits changes nothing: its unit was withdrawn before it
    began, or it commits. Raises what the unit raises, IntegrityError where the commit does, and
    UNAVAILABLE `storage_unavailable`; that the database is away only once the caller's retry
    deadline is over (`retry_deadline.py`).
    """

    async def start(self) -> None:
        """Open connections. Raises UNAVAILABLE `storage_unavailable`."""
        ...

    async def stop(self) -> None:
        """Finish the units that wait, then close. Later units are refused."""
        ...

    async def write(
        self,
        unit: Unit[T],
        *,
        scope: Scope,
        after_commit: Callable[[T], None] | None = None,
    ) -> T:
        """Run a unit in a transaction, which units of other callers may share: each fails alone.
        `after_commit` is called on the event loop with the unit's result once that is durable, even
        if the caller has gone."""
        ...

    async def read(self, unit: Unit[T], *, scope: Scope) -> T:
        """Run a unit that only reads, beside the writers."""
        ...

    def obstacle(self) -> str | None:
        """Why writes of requests fail at present, as far as that is known without one: a
        sentence."""
        ...


class StorageAway(ServiceError):
    """The database does not answer, and may do so again soon. The transaction `in_doubt` may have
    been committed."""

    def __init__(
        self, detail: str = "The database cannot be reached at the moment.", *, in_doubt: str | None = None
    ) -> None:
        super().__init__(
            "storage_unavailable",
            ErrorKind.UNAVAILABLE,
            detail,
            extra={"retry_after_s": RETRY_AFTER_S},
        )
        self.in_doubt = in_doubt


class Job(Generic[T]):
    """A unit on its way through a thread, and the future its caller waits on. Made on the event
    loop."""

    __slots__ = ("_after_commit", "_error", "_executed", "_future", "_loop", "_result", "_unit")

    def __init__(self, unit: Unit[T], after_commit: Callable[[T], None] | None = None) -> None:
        self._unit = unit
        self._executed = False
        self._after_commit = after_commit
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[T] = self._loop.create_future()
        self._result: T | None = None
        self._error: Exception | None = None

    @property
    def withdrawn(self) -> bool:
        """Whether the caller gave up waiting. Read by threads, so true only of what has not begun
        yet."""
        return self._future.cancelled()

    @property
    def failed(self) -> bool:
        """Whether the unit raised."""
        return self._error is not None

    @property
    def result(self) -> T:
        """What the unit returned, whatever became of its transaction; on the event loop, once the
        job is resolved."""
        if not self._executed:
            raise RuntimeError("the unit has not been executed")
        return cast(T, self._result)

    async def wait(self) -> T:
        """The unit's result, on the event loop."""
        return await self._future

    def execute(self, connection: Connection) -> None:
        """Run the unit in the calling thread. Raises what it raises."""
        self._result = self._unit(connection)
        self._executed = True

    def succeed(self, result: T) -> None:
        """The unit was executed elsewhere, with this result."""
        self._result = result
        self._executed = True

    def fail(self, error: Exception) -> None:
        """The unit had no effect, and why."""
        self._error = error

    def resolve(self) -> None:
        """Tell the caller; on the event loop, once the outcome is final."""
        if self._error is not None:
            if not self._future.done():
                self._future.set_exception(translated(self._error))
            return
        if not self._executed:
            return
        result = cast(T, self._result)
        if self._after_commit is not None:
            try:
                self._after_commit(result)
            except Exception:
                logger.exception("a callback after a commit failed")
        if not self._future.done():
            self._future.set_result(result)

    def post(self) -> None:
        """Resolve from a thread."""
        resolve_all(self._loop, [self])


class Resolvable(Protocol):
    """A job whose outcome is final."""

    def resolve(self) -> None:
        """Tell the caller."""
        ...


def resolve_all(loop: asyncio.AbstractEventLoop, jobs: Sequence[Resolvable]) -> None:
    """Resolve jobs from a thread, with one wake-up of the event loop. A loop that has ended has no
    callers left."""

    def resolve() -> None:
        for job in jobs:
            job.resolve()

    try:
        loop.call_soon_threadsafe(resolve)
    except RuntimeError:
        logger.warning("the event loop ended before %d database units were answered", len(jobs))


def translated(error: Exception) -> Exception:
    """What callers see: driver errors as UNAVAILABLE, except for violated constraints, which the
    stores read, and for what the database would refuse again, which is INTERNAL `storage_refused`:
    retries do not help."""
    if isinstance(error, IntegrityError) or not isinstance(error, DBAPIError | PoolTimeoutError):
        return error
    logger.error("a database unit failed", exc_info=error)
    if isinstance(error, DBAPIError) and _is_refused_for_good(error):
        refused = ServiceError(
            "storage_refused", ErrorKind.INTERNAL, "The database refused what was asked of it; the log says why."
        )
        refused.__cause__ = error
        return refused
    unavailable = ServiceError(
        "storage_unavailable",
        ErrorKind.UNAVAILABLE,
        "The database cannot do this at the moment.",
        extra={"retry_after_s": RETRY_AFTER_S},
    )
    unavailable.__cause__ = error
    return unavailable


def _is_refused_for_good(error: DBAPIError) -> bool:
    """Whether the statement or its values are at fault: a missing table or privilege, a value that
    does not fit."""
    if isinstance(error.orig, sqlite3.Error):
        return getattr(error.orig, "sqlite_errorcode", None) in _REFUSED_BY_SQLITE
    state = getattr(error.orig, "sqlstate", None)
    return isinstance(state, str) and state[:2] in _REFUSED_BY_POSTGRESQL


def stopped() -> ServiceError:
    """The database was stopped, or never started."""
    return ServiceError("storage_unavailable", ErrorKind.UNAVAILABLE, "The database is not open.")


def is_duplicate(error: IntegrityError) -> bool:
    """Whether the violated constraint is a uniqueness one (and not, say, a missing parent row)."""
    if isinstance(error.orig, sqlite3.Error):
        return error.orig.sqlite_errorcode in {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
    return getattr(error.orig, "sqlstate", None) == _UNIQUE_VIOLATION


@contextmanager
def duplicates_as(refusal: ServiceError) -> Iterator[None]:
    """Raises the refusal where the block violates a uniqueness constraint."""
    try:
        yield
    except IntegrityError as error:
        if is_duplicate(error):
            raise refusal from error
        raise


def unusable(error: DBAPIError) -> ServiceError:
    """The text for the person who starts the service; the driver's words go to the log, on a
    line."""
    logger.error("the database cannot be used: %s", error.orig)
    return ServiceError(
        "storage_unavailable", ErrorKind.UNAVAILABLE, "The database cannot be used; the line before says why."
    )
