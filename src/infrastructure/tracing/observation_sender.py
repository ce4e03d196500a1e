"""A thread of its own that makes observations of records and sends them, so that tracing never holds up the event loop.

The queue is bounded, a circuit breaker gives up on a backend that does not answer, and closing takes a bounded time.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from infrastructure.tracing.observations import Observation

logger = logging.getLogger(__name__)

Observe = Callable[[], Observation]

_PER_REQUEST = 64
"""Few enough that a request stays in the low megabytes even when every observation carries its full content."""


class ObservationSink(Protocol):
    """A backend, used by the sending thread alone but for `close`."""

    def send(self, observations: Sequence[Observation]) -> bool:
        """Deliver them; False if the backend did not take them. May wait and raise."""
        ...

    def close(self) -> None:
        """No more will follow. Called from any thread, also to cut a `send` short that waits to try again."""
        ...


class ObservationSender:
    """Takes what is to be told from any thread; works it out and sends it on its own.

    `connect` makes the sink, on that thread too and only when there is something to send: backends are heavy to load.
    `collect_s` is how long it waits for company before it sends, `cooldown_s` how long it drops everything after a
    failure. A full queue drops what is new.
    """

    def __init__(
        self,
        connect: Callable[[], ObservationSink],
        *,
        queue_size: int = 2_048,
        collect_s: float = 0.5,
        cooldown_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._sink: ObservationSink | None = None
        self._monotonic = monotonic
        self._queue: deque[Observe] = deque()
        self._queue_size = queue_size
        self._collect_s = collect_s
        self._cooldown_s = cooldown_s
        self._awake = threading.Event()
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._failing_until: float | None = None
        self._dropped = 0
        # A daemon: a request that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="trace-sender", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many were lost so far: to a full queue, to a failure, or while giving a failing backend a rest."""
        return self._dropped

    def submit(self, observe: Observe) -> None:
        """Hand over something to tell. Returns at once; never raises."""
        if len(self._queue) >= self._queue_size or self._closing.is_set():
            self._dropped += 1
            return
        self._queue.append(observe)
        if not self._awake.is_set():
            self._awake.set()

    async def close(self, timeout_s: float = 2.5) -> None:
        """Send what is queued, for at most `timeout_s`; what a hanging backend has not taken by then is lost."""
        self._closing.set()
        self._awake.set()
        await asyncio.to_thread(self._thread.join, timeout_s)
        self._given_up.set()
        if self._thread.is_alive():
            logger.warning("traces were not sent in time and are lost", extra={"left": len(self._queue)})
            if self._sink is not None:
                self._sink.close()

    def _work(self) -> None:
        while not self._closing.is_set():
            self._awake.wait()
            self._closing.wait(self._collect_s)
            self._awake.clear()
            self._send_queued()
        self._send_queued()
        if self._sink is not None and not self._given_up.is_set():
            self._sink.close()

    def _send_queued(self) -> None:
        while self._queue and not self._given_up.is_set():
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), _PER_REQUEST))]
            if self._failing_until is not None and self._monotonic() < self._failing_until:
                self._dropped += len(batch)
                continue
            observations = list(_observed(batch))
            self._dropped += len(batch) - len(observations)
            if observations:
                self._note(self._sent(observations), len(observations))

    def _sent(self, observations: Sequence[Observation]) -> bool:
        try:
            if self._sink is None:
                self._sink = self._connect()
            return self._sink.send(observations)
        except Exception:  # whatever the backend meets, the thread goes on
            logger.exception("traces could not be sent")
            return False

    def _note(self, sent: bool, count: int) -> None:
        if sent:
            if self._failing_until is not None:
                logger.info("traces are sent again", extra={"lost": self._dropped})
            self._failing_until = None
            return
        self._dropped += count
        if self._failing_until is None and not self._given_up.is_set():
            logger.warning("traces cannot be sent and are dropped until the backend answers again")
        self._failing_until = self._monotonic() + self._cooldown_s


def _observed(batch: Sequence[Observe]) -> Iterator[Observation]:
    for observe in batch:
        try:
            yield observe()
        except Exception:  # one bad record must not take its neighbours along
            logger.exception("a trace record could not be told")
