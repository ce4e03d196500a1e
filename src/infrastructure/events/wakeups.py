"""Wake-ups within one process: the embedded set-up's adapter of the `Wakeups` port."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class InProcessWakeups:
    """Topics and their listeners. A topic exists only while somebody listens to it, so waking one without listeners
    costs a dictionary look-up and nothing accumulates. To be used from one event loop."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}

    async def start(self) -> None:
        """There is nobody else to hear of."""

    async def stop(self) -> None:
        """Nor to tell."""

    def hear_of(self, word: str, hear: Callable[[str], None]) -> None:
        """Nor will anybody say anything."""

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator["Listener"]:
        """Listen from entering the context until leaving it."""
        listener = Listener()
        self._listeners.setdefault(topic, set()).add(listener)
        try:
            yield listener
        finally:
            remaining = self._listeners[topic]
            remaining.discard(listener)
            if not remaining:
                del self._listeners[topic]

    def wake(self, *topics: str) -> None:
        """Wake all listeners of the topics."""
        for topic in topics:
            for listener in self._listeners.get(topic, ()):
                listener.wake()

    def wake_all(self) -> None:
        """Wake every listener of any topic."""
        self.wake(*self._listeners)

    @property
    def topic_count(self) -> int:
        """How many topics are listened to."""
        return len(self._listeners)


class Listener:
    """One place to wait. Wake-ups coalesce: however many came since the last wait, the next one returns once."""

    __slots__ = ("_woken",)

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """True when woken, False when `timeout_s` passed."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            # A wake-up that came together with the deadline still counts, or it would be reported one wait late.
            if not self._woken.is_set():
                return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        """Let the present or the next wait return."""
        self._woken.set()
