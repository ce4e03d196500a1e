"""Port of the signals that wake waiting tasks, in this process and in others."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Subscription(Protocol):
    """A place to wait for a topic; a wake-up between two waits is not lost."""

    async def wait(self, timeout_s: float) -> bool:
        """True when woken since the wait before (or since subscribing), False when `timeout_s` passed; 0 only looks.
        Wake-ups coalesce."""
        ...


class Wakeups(Protocol):
    """Push without payload: who is woken reads the store again."""

    def subscribe(self, topic: str) -> AbstractAsyncContextManager[Subscription]:
        """Listen from entering the context until leaving it."""
        ...

    def wake(self, *topics: str) -> None:
        """Wake all listeners of the topics, everywhere. Never blocks, never raises."""
        ...
