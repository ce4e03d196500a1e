"""What the tests of run queues put behind one: a handler that notes what it is given, and a
consumer that is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

import pytest

from domain.ids import RunId


class ConsumedQueue(Protocol):
    """What both sides of a queue use."""

    @property
    def attended(self) -> bool: ...

    async def until_attended(self) -> None: ...

    async def submit(self, *run_ids: RunId) -> None: ...

    async def consume(self, handler: Callable[[RunId], Awaitable[None]], *, concurrency: int) -> None: ...

    async def drain(self, timeout_s: float) -> bool: ...


class Handler:
    """Notes what it is given and works on each run until that is allowed to finish."""

    def __init__(self, *, held: bool = False) -> None:
        self.begun: list[RunId] = []
        self.finished: list[RunId] = []
        self.cancelled: list[RunId] = []
        self.at_once = 0
        self.most_at_once = 0
        self.go_on = asyncio.Event()
        self._changed = asyncio.Condition()
        if not held:
            self.go_on.set()

    async def __call__(self, run_id: RunId) -> None:
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        await self._note(self.begun, run_id)
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled.append(run_id)
            raise
        finally:
            self.at_once -= 1
        await self._note(self.finished, run_id)

    async def until_begun(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= count)

    async def until_finished(self, count: int) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.finished) >= count)

    async def _note(self, where: list[RunId], run_id: RunId) -> None:
        async with self._changed:
            where.append(run_id)
            self._changed.notify_all()


async def settle() -> None:
    """Let everything that can go on go on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def stop(consuming: "asyncio.Task[None]") -> None:
    consuming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consuming


def consume(
    queue: ConsumedQueue, handler: Callable[[RunId], Awaitable[None]], concurrency: int = 4
) -> "asyncio.Task[None]":
    return asyncio.create_task(queue.consume(handler, concurrency=concurrency))
