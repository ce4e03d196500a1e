"""Wake-ups within one process: the embedded set-up's adapter of the `Wakeups` port."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from application.system.deadline import Deadline


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

    def subscribe(self, topic: str) -> "_Listening":
        """Listen from entering the context until leaving it."""
        return _Listening(self._listeners, topic)

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


class _Listening:
    """A topic's listener while it listens; to be entered once."""

    __slots__ = ("_listener", "_listeners", "_topic")

    def __init__(self, listeners: "dict[str, set[Listener]]", topic: str) -> None:
        self._listeners = listeners
        self._topic = topic
        self._listener = Listener()

    async def __aenter__(self) -> "Listener":
        self._listeners.setdefault(self._topic, set()).add(self._listener)
        return self._listener

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        remaining = self._listeners[self._topic]
        remaining.discard(self._listener)
        if not remaining:
            del self._listeners[self._topic]


class Listener:
    """One place to wait. Wake-ups coalesce: however many came since the last wait, the next one returns once."""

    __slots__ = ("_woken",)

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    async def wait(self, timeout_s: float) -> bool:
        """True when woken, False when `timeout_s` passed."""
        try:
            with Deadline(asyncio.get_running_loop().time() + timeout_s):
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
