"""The sweep lock for a single process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class InProcessSweepLock:
    """The ports `SweepLock` and `ForwardTurn` for a process that shares its database with no
    other."""

    def __init__(self) -> None:
        self._held = False

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        if self._held:
            yield False
            return
        self._held = True
        try:
            yield True
        finally:
            self._held = False
