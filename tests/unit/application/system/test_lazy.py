"""Values made at their first use."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from application.system.lazy import Lazy, LazyClosable


class Made:
    """A value that counts how often it was made and closed."""

    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def test_nothing_is_made_before_the_first_use_and_then_once() -> None:
    made: list[Made] = []

    def load() -> Made:
        made.append(Made())
        return made[-1]

    lazy = Lazy(load)
    assert (lazy.loaded, made) == (None, [])
    assert lazy.get() is lazy.get() is lazy.loaded
    assert len(made) == 1


def test_threads_that_need_it_at_the_same_time_share_one_value() -> None:
    barrier = threading.Barrier(4)
    made: list[Made] = []

    def load() -> Made:
        made.append(Made())
        return made[-1]

    lazy = Lazy(load)

    def use() -> Made:
        barrier.wait(60)
        return lazy.get()

    with ThreadPoolExecutor(4) as threads:
        used = [future.result(60) for future in [threads.submit(use) for _ in range(4)]]
    assert made == [used[0]]
    assert all(value is used[0] for value in used)


async def test_it_is_made_beside_the_event_loop_once_however_many_tasks_wait() -> None:
    allowed, making = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    made: list[Made] = []

    def load() -> Made:
        loop.call_soon_threadsafe(making.set)
        assert allowed.wait(60)
        made.append(Made())
        return made[-1]

    lazy = Lazy(load)
    waiting = [asyncio.create_task(lazy.warm()) for _ in range(50)]
    await asyncio.wait_for(making.wait(), 60)
    assert made == []
    assert await asyncio.wait_for(asyncio.to_thread(lambda: "a thread is free"), 60)
    allowed.set()
    values = await asyncio.wait_for(asyncio.gather(*waiting), 60)
    assert made == [values[0]]
    assert await lazy.warm() is lazy.get() is values[0]


async def test_a_task_that_stops_waiting_leaves_the_value_for_the_next() -> None:
    allowed, making = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    made: list[Made] = []

    def load() -> Made:
        loop.call_soon_threadsafe(making.set)
        assert allowed.wait(60)
        made.append(Made())
        return made[-1]

    lazy = Lazy(load)
    task = asyncio.create_task(lazy.warm())
    await asyncio.wait_for(making.wait(), 60)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    allowed.set()
    assert [await asyncio.wait_for(lazy.warm(), 60)] == made


async def test_what_could_not_be_made_is_tried_again_at_the_next_use() -> None:
    attempts = iter([False, False, True])

    def load() -> Made:
        if not next(attempts):
            raise OSError("no file handle is left")
        return Made()

    lazy = Lazy(load)
    with pytest.raises(OSError, match="no file handle"):
        lazy.get()
    with pytest.raises(OSError, match="no file handle"):
        await lazy.warm()
    assert lazy.loaded is None
    assert isinstance(await lazy.warm(), Made)


async def test_only_what_was_made_is_closed() -> None:
    lazy = LazyClosable(Made)
    await lazy.close()
    assert lazy.loaded is None
    made = lazy.get()
    await lazy.close()
    assert made.closed == 1
