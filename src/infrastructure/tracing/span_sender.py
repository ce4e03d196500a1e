"""A thread of its own that turns records into spans and sends them, so that tracing never holds up the event loop.

The queue is bounded, a circuit breaker gives up on a backend that does not answer, and closing takes a bounded time.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

logger = logging.getLogger(__name__)

MakeSpan = Callable[[], ReadableSpan]

_SPANS_PER_REQUEST = 64
"""Few enough that a request stays in the low megabytes even when every span carries its full content."""


class SpanSender:
    """Takes span makers from any thread; makes and exports their spans on its own.

    `collect_s` is how long it waits for company before it sends, `cooldown_s` how long it drops everything after a
    failed export. A full queue drops what is new.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        queue_size: int = 2_048,
        collect_s: float = 0.5,
        cooldown_s: float = 30.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._exporter = exporter
        self._monotonic = monotonic
        self._queue: deque[MakeSpan] = deque()
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
        """Spans lost so far: to a full queue, to a failed export, or while giving a failing backend a rest."""
        return self._dropped

    def submit(self, make: MakeSpan) -> None:
        """Hand over a span to be made and sent. Returns at once; never raises."""
        if len(self._queue) >= self._queue_size or self._closing.is_set():
            self._dropped += 1
            return
        self._queue.append(make)
        if not self._awake.is_set():
            self._awake.set()

    async def close(self, timeout_s: float = 2.5) -> None:
        """Send what is queued, for at most `timeout_s`; what a hanging backend has not taken by then is lost."""
        self._closing.set()
        self._awake.set()
        await asyncio.to_thread(self._thread.join, timeout_s)
        self._given_up.set()
        if self._thread.is_alive():
            logger.warning("traces were not sent in time and are lost", extra={"spans": len(self._queue)})
            self._exporter.shutdown()  # interrupts the wait before a retry

    def _work(self) -> None:
        while not self._closing.is_set():
            self._awake.wait()
            self._closing.wait(self._collect_s)
            self._awake.clear()
            self._send_queued()
        self._send_queued()
        if not self._given_up.is_set():
            self._exporter.shutdown()

    def _send_queued(self) -> None:
        while self._queue and not self._given_up.is_set():
            makers = [self._queue.popleft() for _ in range(min(len(self._queue), _SPANS_PER_REQUEST))]
            if self._failing_until is not None and self._monotonic() < self._failing_until:
                self._dropped += len(makers)
                continue
            spans = list(_made(makers))
            self._dropped += len(makers) - len(spans)
            if spans:
                self._export(spans)

    def _export(self, spans: Sequence[ReadableSpan]) -> None:
        try:
            sent = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception:  # noqa: BLE001  # whatever the exporter meets, the thread goes on
            sent = False
        if sent:
            if self._failing_until is not None:
                logger.info("traces are sent again", extra={"spans_lost": self._dropped})
            self._failing_until = None
            return
        self._dropped += len(spans)
        if self._failing_until is None:
            logger.warning("traces cannot be sent and are dropped until the backend answers again")
        self._failing_until = self._monotonic() + self._cooldown_s


def _made(makers: Sequence[MakeSpan]) -> Iterator[ReadableSpan]:
    for make in makers:
        try:
            yield make()
        except Exception:  # one bad record must not take its neighbours along
            logger.exception("a trace span could not be made")
