"""Builds what keeps and carries data: by the settings one SQLite file, or PostgreSQL shared with other processes."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

from application.retention.ports import SweepLock
from application.runs.ports import RunQueue, Wakeups
from application.secrets.ports import KeyRing
from application.system.ports import IdSource
from domain.ids import RunId
from infrastructure.events.wakeups import InProcessWakeups
from infrastructure.home import Home
from infrastructure.jobs.embedded import InProcessRunQueue
from infrastructure.jobs.sweep_lock import InProcessSweepLock
from infrastructure.persistence.database import Database
from infrastructure.persistence.postgres_url import library_url
from infrastructure.persistence.revision import is_current
from infrastructure.persistence.run_store import SqlRunStore
from infrastructure.persistence.sqlite import SqliteDatabase
from infrastructure.secret_keys import GivenKeyRing, HomeKeyRing, load_or_create_secret_keys
from infrastructure.secrets import SecretBox
from infrastructure.settings import Settings

TOKEN_CACHE_CAPACITY = 1_000
StoreT = TypeVar("StoreT")


def secret_box(settings: Settings) -> SecretBox:
    return SecretBox(settings.secret_keys or load_or_create_secret_keys(settings.home))


def key_ring(settings: Settings, box: SecretBox) -> KeyRing:
    return GivenKeyRing() if settings.secret_keys else HomeKeyRing(home=settings.home, box=box)


def upgrade_schema(settings: Settings, home: Home) -> bool:
    """Bring the schema up to date, and say whether it was not; Alembic is imported only when there is something to do."""
    url = settings.postgres_url or f"sqlite:///{home.database_path}"
    if is_current(url):
        return False
    from infrastructure.persistence.upgrade import upgrade

    return upgrade(url)


def database(settings: Settings, home: Home) -> Database:
    if settings.postgres_url is None:
        return SqliteDatabase(home.database_path, synchronous=settings.sqlite_synchronous)
    from infrastructure.persistence.postgres import PostgresDatabase

    return PostgresDatabase(settings.postgres_url)


class OpenWakeups(Wakeups, Protocol):
    """Wake-ups with a beginning and an end."""

    async def start(self) -> None:
        """Begin to hear of other processes."""
        ...

    async def stop(self) -> None:
        """Tell them what is left to tell, in bounded time."""
        ...


def wakeups(settings: Settings, ids: IdSource) -> OpenWakeups:
    if settings.postgres_url is None:
        return InProcessWakeups()
    from infrastructure.events.postgres_wakeups import PostgresWakeups

    return PostgresWakeups(library_url(settings.postgres_url), process=ids.new("prc"))


class ConsumedRunQueue(RunQueue, Protocol):
    """A run queue with its other side."""

    async def consume(self, handler: Callable[[RunId], Awaitable[None]], *, concurrency: int) -> None:
        """Handle runs until drained."""
        ...

    async def drain(self, timeout_s: float) -> bool:
        """Take no run any more; whether those in hand are done."""
        ...


def run_queue(settings: Settings, database: Database) -> ConsumedRunQueue:
    if settings.postgres_url is None:
        return InProcessRunQueue()
    from infrastructure.jobs.procrastinate_queue import ProcrastinateRunQueue

    return ProcrastinateRunQueue(library_url(settings.postgres_url), database=database)


def run_store(settings: Settings, database: Database, wakeups: Wakeups) -> SqlRunStore:
    if settings.postgres_url is None:
        return SqlRunStore(database=database, wakeups=wakeups)
    from infrastructure.jobs.procrastinate_queue import submit_runs

    return SqlRunStore(database=database, wakeups=wakeups, submit=submit_runs)


def sweep_lock(settings: Settings) -> SweepLock:
    if settings.postgres_url is None:
        return InProcessSweepLock()
    from infrastructure.persistence.postgres_sweep_lock import PostgresSweepLock

    return PostgresSweepLock(library_url(settings.postgres_url))


def kept(settings: Settings, store: StoreT, keeping: Callable[[StoreT], StoreT]) -> StoreT:
    """The store, kept in memory where no other process writes behind its back; ADR 0006."""
    return keeping(store) if settings.postgres_url is None else store


def revocation_feed(settings: Settings) -> Callable[[], bool]:
    """Whether this process hears at once when something that it remembers is revoked."""
    is_alone = settings.postgres_url is None
    return lambda: is_alone


def token_capacity(settings: Settings) -> int:
    """A key that another process revokes is to be refused at once."""
    return TOKEN_CACHE_CAPACITY if settings.postgres_url is None else 0
