"""The sending thread: nothing it meets stops it, and a failing backend is not asked again too soon."""

import asyncio
import queue
import threading
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from infrastructure.tracing.span_sender import SpanSender


class FakeBackend(SpanExporter):
    """Answers as told, remembers what it took, and can be made to hang."""

    def __init__(self) -> None:
        self.answers: list[SpanExportResult | Exception] = []
        self.taken: queue.Queue[list[str]] = queue.Queue()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.was_shut_down = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken.put([span.name for span in spans])
        self.may_answer.wait()
        answer = self.answers.pop(0) if self.answers else SpanExportResult.SUCCESS
        if isinstance(answer, Exception):
            raise answer
        return answer

    def shutdown(self) -> None:
        self.was_shut_down.set()
        self.may_answer.set()


class HandClock:
    """Moves when told, and tells when it was looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self._looked_at = threading.Event()

    def __call__(self) -> float:
        now = self.now
        self._looked_at.set()
        return now

    async def was_looked_at(self) -> None:
        assert await asyncio.to_thread(self._looked_at.wait, 10)
        self._looked_at.clear()


def submit(sender: SpanSender, name: str) -> None:
    sender.submit(lambda: ReadableSpan(name=name))


def taken(backend: FakeBackend) -> list[str]:
    return backend.taken.get(timeout=10)


async def test_spans_are_sent_in_order_and_closing_shuts_the_exporter_down() -> None:
    backend = FakeBackend()
    sender = SpanSender(backend, collect_s=0)

    for number in range(100):
        submit(sender, str(number))
    async with asyncio.timeout(5):
        await sender.close()

    sent = [name for batch in backend.taken.queue for name in batch]
    assert sent == [str(number) for number in range(100)]
    assert backend.was_shut_down.is_set()
    assert sender.dropped == 0


@pytest.mark.requirement("G1")
async def test_a_full_queue_drops_what_is_new_and_never_waits() -> None:
    backend = FakeBackend()
    backend.may_answer.clear()
    sender = SpanSender(backend, collect_s=0, queue_size=10)
    submit(sender, "being sent")
    assert await asyncio.to_thread(taken, backend) == ["being sent"]

    for number in range(15):
        submit(sender, str(number))

    assert sender.dropped == 5
    backend.may_answer.set()
    await sender.close()
    assert [name for batch in backend.taken.queue for name in batch] == [str(number) for number in range(10)]


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("failure", [SpanExportResult.FAILURE, RuntimeError("exporter broke")])
async def test_after_a_failure_everything_is_dropped_until_the_rest_is_over(
    failure: SpanExportResult | Exception,
) -> None:
    backend, clock = FakeBackend(), HandClock()
    backend.answers = [failure]
    sender = SpanSender(backend, collect_s=0, cooldown_s=30, monotonic=clock)
    submit(sender, "refused")
    assert await asyncio.to_thread(taken, backend) == ["refused"]
    await clock.was_looked_at()

    clock.now = 29
    submit(sender, "dropped")
    await clock.was_looked_at()
    clock.now = 31
    submit(sender, "sent")

    assert await asyncio.to_thread(taken, backend) == ["sent"]
    await sender.close()
    assert sender.dropped == 2


async def test_a_record_that_makes_no_span_does_not_take_its_neighbours_along() -> None:
    backend = FakeBackend()
    sender = SpanSender(backend, collect_s=3_600)

    def broken() -> ReadableSpan:
        raise ValueError("a bad record")

    submit(sender, "before")
    sender.submit(broken)
    submit(sender, "after")
    await sender.close()

    assert taken(backend) == ["before", "after"]
    assert sender.dropped == 1


@pytest.mark.requirement("G1")
async def test_closing_gives_up_on_a_backend_that_hangs() -> None:
    backend = FakeBackend()
    backend.may_answer.clear()
    sender = SpanSender(backend, collect_s=0)
    submit(sender, "hanging")
    await asyncio.to_thread(taken, backend)
    submit(sender, "never sent")

    async with asyncio.timeout(5):
        await sender.close(timeout_s=0.05)

    assert backend.was_shut_down.is_set()
    submit(sender, "too late")
    assert sender.dropped == 1
    assert backend.taken.empty()
