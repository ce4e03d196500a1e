"""Rows kept in memory between reads, for tables that are read at every turn and seldom written. ADR 0006 and 0015."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from domain.ids import OrganizationId
from infrastructure.events.row_feed import RowFeed

Key = TypeVar("Key", bound=tuple[str, ...])
"""An organization's id, then what is particular to the table."""
Key_contra = TypeVar("Key_contra", bound=tuple[str, ...], contravariant=True)
Value = TypeVar("Value")


class Kept(Protocol[Key_contra, Value]):
    """Where a store looks before it reads, and what it tells of its writes."""

    def known(self, key: Key_contra) -> Value | None:
        """What is kept, without a read."""
        ...

    async def get(self, key: Key_contra, load: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """What is kept, or what `load` finds."""
        ...

    def drop(self, key: Key_contra) -> None:
        """The row of `key` was written."""
        ...

    def clear(self, organization_id: OrganizationId) -> None:
        """Something of the organization's was written."""
        ...


class RowCache(Generic[Key, Value]):
    """At most `capacity` values, least recently used out first; none is used while the feed is not fresh. What was being read
    while `drop` or `clear` was called, or a change was heard of, is not kept, so that a value never outlives the write that
    changed it. `tables` are those whose changes the feed tells of."""

    def __init__(self, capacity: int, *, feed: RowFeed, tables: tuple[str, ...]) -> None:
        self._capacity = capacity
        self._feed = feed
        self._tables = tables
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._generation = 0
        feed.listen(self._forget, *tables)

    def known(self, key: Key) -> Value | None:
        """The kept value; None if there is none that may be used."""
        kept = self._values.get(key)
        if kept is None or not self._feed.fresh():
            return None
        self._values.move_to_end(key)
        return kept

    async def get(self, key: Key, load: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """The kept value, or what `load` finds; nothing found is not kept."""
        kept = self.known(key)
        if kept is not None:
            return kept
        generation = self._generation
        value = await load()
        if generation == self._generation:
            if value is None:
                self._values.pop(key, None)
            else:
                self._values[key] = value
                if len(self._values) > self._capacity:
                    self._values.popitem(last=False)
        return value

    def drop(self, key: Key) -> None:
        """The row of `key` was written."""
        self._generation += 1
        self._values.pop(key, None)
        self._feed.wrote(self._tables, OrganizationId(key[0]))

    def clear(self, organization_id: OrganizationId) -> None:
        """Something of the organization's was written: keep nothing from before, of anybody's."""
        self._empty()
        self._feed.wrote(self._tables, organization_id)

    def _forget(self, organization_id: OrganizationId | None) -> None:
        if organization_id is None:
            self._empty()
            return
        self._generation += 1
        for key in [key for key in self._values if key[0] == organization_id]:
            del self._values[key]

    def _empty(self) -> None:
        self._generation += 1
        self._values.clear()


class ReadAnew(Generic[Key, Value]):
    """For those who change rows and those who look at what they changed: reads the database each time, and empties `kept` of
    what they write."""

    def __init__(self, kept: Kept[Key, Value]) -> None:
        self._kept = kept

    def known(self, key: Key) -> Value | None:
        """Nothing."""
        return None

    async def get(self, key: Key, load: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """What `load` finds."""
        return await load()

    def drop(self, key: Key) -> None:
        """The row of `key` was written."""
        self._kept.drop(key)

    def clear(self, organization_id: OrganizationId) -> None:
        """Something of the organization's was written."""
        self._kept.clear(organization_id)
