"""Rows kept in memory between reads, for tables that are read at every turn and seldom written."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class RowCache(Generic[Key, Value]):
    """At most `capacity` values, least recently used out first. What was being read while `drop` or `clear` was called is
    not kept, so that a value never outlives the write that changed it."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._generation = 0

    async def get(self, key: Key, load: Callable[[], Awaitable[Value | None]]) -> Value | None:
        """The kept value, or what `load` finds; nothing found is not kept."""
        kept = self._values.get(key)
        if kept is not None:
            self._values.move_to_end(key)
            return kept
        generation = self._generation
        value = await load()
        if value is not None and generation == self._generation:
            self._values[key] = value
            if len(self._values) > self._capacity:
                self._values.popitem(last=False)
        return value

    def drop(self, key: Key) -> None:
        """The row of `key` was written."""
        self._generation += 1
        self._values.pop(key, None)

    def clear(self) -> None:
        """Something was written: keep nothing from before."""
        self._generation += 1
        self._values.clear()
