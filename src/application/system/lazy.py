"""Values created at their first use, for example from a heavy library. Standard library only, for
every layer."""

import asyncio
import threading
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """The value of `load`, which the first thread that needs it calls once; again only if it
    raised. `load` imports and builds, without I/O on the event loop."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._warming = asyncio.Lock()
        self.loaded: T | None = None
        """The value; None before its first use."""

    def get(self) -> T:
        """The value, loaded in this thread if needed."""
        value = self.loaded
        if value is None:
            with self._loading:
                value = self.loaded = self._load() if self.loaded is None else self.loaded
        return value

    async def warm(self) -> T:
        """The value, loaded in a worker thread if needed."""
        if self.loaded is None:
            async with self._warming:  # so that waiting tasks hold no threads
                return await asyncio.to_thread(self.get)
        return self.loaded


class Closable(Protocol):
    """A value with connections or processes to close."""

    async def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class LazyClosable(Lazy[C]):
    """A value to be closed if it was loaded."""

    async def close(self) -> None:
        """Close the value; does nothing before its first use."""
        if self.loaded is not None:
            await self.loaded.close()
