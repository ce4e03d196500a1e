"""Bytes of work that a process holds in memory, and a bound on them. Not thread-safe."""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType


class MemoryBudget:
    """Rules:
    - Holds are admitted while they fit into `limit` together. A hold alone is admitted whatever its
      size, also beside what settled holds keep within `limit`.
    - What waits for room is admitted in order.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held = self._holds = self._kept = 0
        self._waiting: deque[tuple[Callable[[], int], asyncio.Future[int]]] = deque()

    def open(self) -> "Hold":
        """A hold of nothing yet."""
        return Hold(self, 0)

    async def hold(self, size: Callable[[], int]) -> "Hold":
        """A hold of `size` bytes, once there is room for what `size` then is."""
        entry = size, asyncio.get_running_loop().create_future()
        self._waiting.append(entry)
        self.admit()
        try:
            return Hold(self, await entry[1])
        except asyncio.CancelledError:
            with suppress(ValueError):
                self._waiting.remove(entry)
            self.change(0 if entry[1].cancelled() else entry[1].result(), 0)
            raise

    def has_room(self, before: int, after: int) -> bool:
        """Whether a hold of `before` bytes may hold `after`."""
        if after <= before or self._held + self._kept + after - before <= self.limit:
            return True
        return self._holds == (before > 0) and self._kept <= self.limit

    def change(self, before: int, after: int) -> None:
        """A hold of `before` bytes now holds `after`; none is a hold of 0."""
        self._held += after - before
        self._holds += (after > 0) - (before > 0)
        self.admit()

    def keep(self, more: int) -> None:
        """Settled holds keep `more` bytes, or fewer."""
        self._kept += more
        self.admit()

    def admit(self) -> None:
        """Admit what waits and now has room."""
        while self._waiting and self.has_room(0, size := self._waiting[0][0]()):
            _, turn = self._waiting.popleft()
            if not turn.done():
                self._held += size
                self._holds += size > 0
                turn.set_result(size)


class Hold:
    """Bytes that are held until the block ends."""

    def __init__(self, budget: MemoryBudget, size: int) -> None:
        self._budget = budget
        self._size = size
        self._kept = 0

    def grow(self, size: int) -> bool:
        """Hold `size` bytes if there is room; False leaves the hold as it is."""
        if not self._budget.has_room(self._size, size):
            return False
        self.resize(size)
        return True

    def resize(self, size: int) -> None:
        """Hold `size` bytes, whether or not there is room: they are in memory already."""
        before, self._size = self._size, size
        self._budget.change(before, size)

    def settle(self, size: int) -> None:
        """Keep `size` bytes of what was held until the block ends: the work on them is done."""
        self.resize(0)
        more, self._kept = size - self._kept, size
        self._budget.keep(more)

    def __enter__(self) -> "Hold":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.settle(0)
