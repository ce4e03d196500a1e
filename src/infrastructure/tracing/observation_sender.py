"""A thread that converts records to observations and sends them, so that tracing never blocks the
event loop.

The queue is bounded, a circuit breaker handles an unresponsive backend, and closing takes bounded
time.
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
"""Small enough that a request stays within a few megabytes even with full content."""


class ObservationSink(Protocol):
    """A backend. Only the sending thread uses it, except for `close`."""

    def send(self, observations: Sequence[Observation]) -> bool:
        """Deliver the observations; False if the backend rejected them. May block and raise."""

    def close(self) -> None:
        """Nothing more follows. Called from any thread, also to interrupt a `send` that waits to
        retry."""


class ObservationSender:
    """Accepts records from any thread; converts and sends them on its own thread.

    - `connect` creates the sink on that thread, and only when there is something to send, because
      backends are heavy to load.
    - `collect_s` is how long records are batched before they are sent.
    - `cooldown_s` is how long everything is dropped after a failure.
    - A full queue drops new records.
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
        # A daemon thread, so that a hanging request does not keep the process alive.
        self._thread = threading.Thread(target=self._work, name="trace-sender", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of lost records: a full queue, a failure, or the pause after a failure."""
        return self._dropped

    def submit(self, observe: Observe) -> None:
        """Queue a record. Returns at once; never raises."""
        if len(self._queue) >= self._queue_size or self._closing.is_set():
            self._dropped += 1
            return
        self._queue.append(observe)
        if not self._awake.is_set():
            self._awake.set()

    async def close(self, timeout_s: float = 2.5) -> None:
        """Send what is queued, for at most `timeout_s`; the rest is lost."""
        self._closing.set()
        self._awake.set()
        await asyncio.to_thread(self._thread.join, timeout_s)
        self._given_up.set()
        if self._thread.is_alive():
            logger.warning("traces were not sent in time; they are lost", extra={"left": len(self._queue)})
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
        except Exception:  # the thread survives any failure of the backend
            logger.exception("traces could not be sent")
            return False

    def _note(self, sent: bool, count: int) -> None:
        if sent:
            if self._failing_until is not None:
                logger.info("sending traces resumed", extra={"lost": self._dropped})
            self._failing_until = None
            return
        self._dropped += count
        if self._failing_until is None and not self._given_up.is_set():
            logger.warning("traces cannot be sent; dropped until the backend answers")
        self._failing_until = self._monotonic() + self._cooldown_s


def _observed(batch: Sequence[Observe]) -> Iterator[Observation]:
    for observe in batch:
        try:
            yield observe()
        except Exception:  # one bad record must not affect others
            logger.exception("trace record could not be converted")
