"""Wake-ups within one process: the `Wakeups` port without other processes."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from application.system.deadline import Deadline


class InProcessWakeups:
    """Topics and their listeners. A topic exists only while it has listeners, so nothing
    accumulates. Use it from one event loop."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}

    async def start(self) -> None:
        """There is nothing to connect."""

    async def stop(self) -> None:
        """There is nothing to disconnect."""

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        """There are no other processes."""

    def subscribe(self, *topics: str) -> "_Listening":
        return _Listening(self._listeners, topics)

    def wake(self, *topics: str) -> None:
        for topic in topics:
            for listener in self._listeners.get(topic, ()):
                listener.wake()

    def wake_here(self, *topics: str) -> None:
        self.wake(*topics)

    def wake_all(self) -> None:
        self.wake(*self._listeners)

    @property
    def topic_count(self) -> int:
        return len(self._listeners)


class _Listening:
    """A registered listener; enter it once."""

    __slots__ = ("_listener", "_listeners", "_topics")

    def __init__(self, listeners: "dict[str, set[Listener]]", topics: tuple[str, ...]) -> None:
        self._listeners = listeners
        self._topics = topics
        self._listener = Listener()

    async def __aenter__(self) -> "Listener":
        for topic in self._topics:
            self._listeners.setdefault(topic, set()).add(self._listener)
        return self._listener

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for topic in self._topics:
            remaining = self._listeners[topic]
            remaining.discard(self._listener)
            if not remaining:
                del self._listeners[topic]


class Listener:
    """A waiting point. Wake-ups coalesce: after any number of them, the next wait returns once."""

    __slots__ = ("_woken",)

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """True when woken, False after `timeout_s`."""
        try:
            with Deadline(asyncio.get_running_loop().time() + timeout_s):
                await self._woken.wait()
        except TimeoutError:
            # A wake-up at the same moment as the deadline is reported now, not one wait late.
            if not self._woken.is_set():
                return False
        self._woken.clear()
        return True

    def wake(self) -> None:
        """Let the current or the next wait return."""
        self._woken.set()
