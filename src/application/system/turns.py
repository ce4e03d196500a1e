"""Much work on the event loop, in slices between which others run."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import Final, TypeVar

SLICE_S: Final = 0.001
"""Time on the processor before others run."""
_REST: Final = 3
"""How many times as long as the slice they have the loop for themselves."""

_Item = TypeVar("_Item")


async def in_turns(items: Iterable[_Item]) -> AsyncIterator[_Item]:
    """The items. After each slice of what the caller does with them, other tasks run for three
    times as long: with one turn each, a task that waits for the loop again and again would wait for
    a slice each time."""
    began = time.thread_time()
    for item in items:
        yield item
        if (taken_s := time.thread_time() - began) > SLICE_S:
            await asyncio.sleep(taken_s * _REST)
            began = time.thread_time()


class Turn:
    """Work of a few long pieces: its time on the processor since it was made, or since its last
    rest."""

    def __init__(self) -> None:
        self._began = time.thread_time()

    async def rest(self) -> None:
        """Let others run for three times as long as the work took, unless it was short."""
        if (taken_s := time.thread_time() - self._began) > SLICE_S:
            await asyncio.sleep(taken_s * _REST)
            self._began = time.thread_time()
