"""Port of the signals that wake waiting tasks, in this process and in others."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Subscription(Protocol):
    """A subscription to topics. A wake-up between two waits is not lost."""

    async def wait(self, timeout_s: float) -> bool:
        """True when woken since the last wait (or subscription), False after `timeout_s`; 0 only
        checks. Wake-ups coalesce."""


class Wakeups(Protocol):
    """Signals without content: a woken task reads the store again."""

    def subscribe(self, *topics: str) -> AbstractAsyncContextManager[Subscription]:
        """Subscribe until the context ends; each of the topics wakes it."""

    def wake(self, *topics: str) -> None:
        """Wake all subscribers of the topics, in all processes. Never blocks, never raises."""
