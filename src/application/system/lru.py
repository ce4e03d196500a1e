"""Bounded dictionary of what can be read or computed again. Standard library only, for every
layer."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """At most `capacity` entries, each counted as `weight` says; the least recently used ones are
    dropped for new ones.

    - Reading and writing an entry is use; `in` and iteration are not.
    - An entry heavier than `capacity` is not stored.
    - `on_drop` is called for entries that had to make room, not for those removed by `pop` or
      `clear`.

    Not for several threads.
    """

    def __init__(
        self,
        capacity: int,
        *,
        weight: Callable[[Value], int] = lambda _: 1,
        on_drop: Callable[[Value], object] = lambda _: None,
    ) -> None:
        self._capacity = capacity
        self._weight = weight
        self._on_drop = on_drop
        self._entries: OrderedDict[Key, Value] = OrderedDict()
        self._weighs = 0

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[Key]:
        """A copy of the keys, the least recently used first; entries may be removed during the
        iteration."""
        return iter(list(self._entries))

    def items(self) -> list[tuple[Key, Value]]:
        """A copy of the entries, the least recently used first."""
        return list(self._entries.items())

    def get(self, key: Key) -> Value | None:
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: Key, value: Value) -> None:
        self.pop(key)
        weight = self._weight(value)
        if weight > self._capacity:
            return
        self._entries[key] = value
        self._weighs += weight
        while self._weighs > self._capacity:
            _, dropped = self._entries.popitem(last=False)
            self._weighs -= self._weight(dropped)
            self._on_drop(dropped)

    def pop(self, key: Key) -> Value | None:
        """Remove an entry and return its value."""
        value = self._entries.pop(key, None)
        if value is not None:
            self._weighs -= self._weight(value)
        return value

    def clear(self) -> None:
        self._entries.clear()
        self._weighs = 0
