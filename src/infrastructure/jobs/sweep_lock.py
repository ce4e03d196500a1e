"""Whose turn it is to sweep, in the one process there is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class InProcessSweepLock:
    """The `SweepLock` port for a process that has its database alone."""

    def __init__(self) -> None:
        self._held = False

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Whether nobody else is at it."""
        if self._held:
            yield False
            return
        self._held = True
        try:
            yield True
        finally:
            self._held = False
