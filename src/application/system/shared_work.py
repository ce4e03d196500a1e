"""Work that many may want at once, and that is done once."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class SharedWork(Generic[K, T]):
    """Rules:
    - For a key there is one piece of work at a time. Who wants it meanwhile gets its result, or its
      error.
    - A waiter that leaves does not stop it.
    """

    def __init__(self, *, name: str) -> None:
        self._name = name
        self._under_way: dict[K, asyncio.Task[T]] = {}

    async def result(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work under way, otherwise of `work`."""
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(work(), name=self._name)
            task.add_done_callback(lambda done: self._ended(key, done))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """Stop what is under way."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, key: K, task: "asyncio.Task[T]") -> None:
        del self._under_way[key]
        if not task.cancelled():
            task.exception()  # retrieved here, as all waiters may have left
