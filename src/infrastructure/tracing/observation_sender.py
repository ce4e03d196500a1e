"""A thread that converts records and sends them, so that traces, logs and metrics never block the
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
from typing import Generic, Protocol, TypeVar

from infrastructure.tracing.observations import Observation

logger = logging.getLogger(__name__)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

_PER_REQUEST = 64
"""Small enough that a request stays within a few megabytes even with full content."""


class Sink(Protocol[T_contra]):
    """A backend. Only the sending thread uses it, except for `close`."""

    def send(self, records: Sequence[T_contra], /) -> bool:
        """Deliver the records; False if the backend rejected them. May block and raise."""

    def close(self) -> None:
        """Nothing more follows. Called from any thread, also to interrupt a `send` that waits to
        retry."""


class BackgroundSender(Generic[T]):
    """Accepts records from any thread; converts and sends them on its own thread.

    - `connect` creates the sink on that thread, and only when there is something to send, because
      backends are heavy to load.
    - `collect_s` is how long records are batched before they are sent.
    - `cooldown_s` is how long everything is dropped after a failure.
    - A full queue drops new records.
    """

    def __init__(
        self,
        connect: Callable[[], Sink[T]],
        *,
        what: str = "traces",
        queue_size: int = 2_048,
        collect_s: float = 0.5,
        cooldown_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._what = what
        self._sink: Sink[T] | None = None
        self._monotonic = monotonic
        self._queue: deque[Callable[[], T]] = deque()
        self._queue_size = queue_size
        self._collect_s = collect_s
        self._cooldown_s = cooldown_s
        self._awake = threading.Event()
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._failing_until: float | None = None
        self._dropped = 0
        # A daemon thread, so that a hanging request does not keep the process alive.
        self._thread = threading.Thread(target=self._work, name=f"{what}-sender", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """The number of lost records: a full queue, a failure, or the pause after a failure."""
        return self._dropped

    def submit(self, convert: Callable[[], T]) -> None:
        """Queue a record, which `convert` returns on the sending thread. Returns at once; never
        raises."""
        if len(self._queue) >= self._queue_size or self._closing.is_set():
            self._dropped += 1
            return
        self._queue.append(convert)
        if not self._awake.is_set():
            self._awake.set()

    async def close(self, timeout_s: float = 2.5) -> None:
        """Send what is queued, for at most `timeout_s`; the rest is lost."""
        self._closing.set()
        self._awake.set()
        await asyncio.to_thread(self._thread.join, timeout_s)
        self._given_up.set()
        if self._thread.is_alive():
            logger.warning("%s were not sent in time; they are lost", self._what, extra={"left": len(self._queue)})
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
            records = list(_converted(batch))
            self._dropped += len(batch) - len(records)
            if records:
                self._note(self._sent(records), len(records))

    def _sent(self, records: Sequence[T]) -> bool:
        try:
            if self._sink is None:
                self._sink = self._connect()
            return self._sink.send(records)
        except Exception:  # the thread survives any failure of the backend
            logger.exception("%s could not be sent", self._what)
            return False

    def _note(self, sent: bool, count: int) -> None:
        if sent:
            if self._failing_until is not None:
                logger.info("sending %s resumed", self._what, extra={"lost": self._dropped})
            self._failing_until = None
            return
        self._dropped += count
        if self._failing_until is None and not self._given_up.is_set():
            logger.warning("%s cannot be sent; dropped until the backend answers", self._what)
        self._failing_until = self._monotonic() + self._cooldown_s


ObservationSink = Sink[Observation]
ObservationSender = BackgroundSender[Observation]


def _converted(batch: Sequence[Callable[[], T]]) -> Iterator[T]:
    for convert in batch:
        try:
            yield convert()
        except Exception:  # one bad record must not affect others
            logger.exception("record could not be converted")
