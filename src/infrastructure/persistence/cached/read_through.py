"""Read-through cache in front of stores whose rows are read at every turn and rarely written. ADR
0006 and 0015."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import wraps
from typing import Generic, Protocol, TypeVar, cast, runtime_checkable

from application.system.lru import LruCache
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from infrastructure.events.row_notifications import RowNotifications

S = TypeVar("S")
Method = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReads:
    """What is cached of a store: the results of `reads` by their arguments, until one of `writes`
    or a change of `table`, or of a table of `also` by any process. The first argument of each is an
    organization's id, or an object with one."""

    table: str
    reads: tuple[Method, ...]
    writes: tuple[Method, ...]
    capacity: int = 1_000
    also: tuple[str, ...] = ()


class ReadThrough(Generic[S]):
    """Two views of a store.

    - `cached` reads from memory if possible. Missing rows (None) are not cached; without change
      notifications nothing is.
    - `fresh` reads the database, for use cases that change rows or show changes.
    - A write by either view invalidates the organization's rows, even if it fails.
    - A read that overlaps an invalidation is not cached, so no value outlives its change.
    """

    def __init__(self, store: S, what: CachedReads, *, notifications: RowNotifications) -> None:
        self._table = what.table
        self._notifications = notifications
        self._values: LruCache[tuple[object, ...], object] = LruCache(what.capacity)
        self._generation = 0
        notifications.listen(self._drop, what.table)
        notifications.watch(lambda _: self._drop(None), *what.also)
        writes = {write.__name__: self._dropping(getattr(store, write.__name__)) for write in what.writes}
        reads = {read.__name__: self._through(getattr(store, read.__name__)) for read in what.reads}
        self.cached = cast(S, _View(store, reads | writes))
        self.fresh = cast(S, _View(store, writes))

    def _through(self, read: Method) -> Method:
        name = read.__name__

        @wraps(read)
        async def through(*args: object) -> object:
            key = (_organization_of(args[0]), name, *args)
            value = self._values.get(key) if self._notifications.fresh() else None
            if value is not None:
                return value
            generation = self._generation
            value = await read(*args)
            if generation == self._generation:
                if value is None:
                    self._values.pop(key)
                else:
                    self._values.put(key, value)
            return value

        return through

    def _dropping(self, write: Method) -> Method:
        @wraps(write)
        async def dropping(*args: object, **kwargs: object) -> object:
            try:
                return await write(*args, **kwargs)
            finally:
                self._notifications.changed(self._table, _organization_of(args[0]))

        return dropping

    def _drop(self, organization_id: OrganizationId | None) -> None:
        self._generation += 1
        for key in self._values:
            if organization_id in (None, key[0]):
                self._values.pop(key)


class _View:
    """A store with some replaced methods."""

    def __init__(self, store: object, methods: dict[str, Method]) -> None:
        self._store = store
        vars(self).update(methods)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@runtime_checkable
class _Owned(Protocol):
    @property
    def organization_id(self) -> OrganizationId: ...


def _organization_of(subject: object) -> OrganizationId:
    match subject:
        case str():
            return OrganizationId(subject)
        case Organization():
            return subject.id
        case _Owned():
            return subject.organization_id
        case _:
            raise TypeError(f"{type(subject).__name__} belongs to no organization")
