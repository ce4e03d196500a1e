"""The sending thread: nothing it meets stops it, and a failing backend is not asked again too
soon."""

import asyncio
import queue
import threading
from collections.abc import Sequence

import pytest

from infrastructure.tracing.observation_sender import ObservationSender
from infrastructure.tracing.observations import Observation, ObservationKind
from tests.builders import START

PATIENCE_S = 60.0


class FakeBackend:
    """Answers as told, remembers what it took, and can be made to hang."""

    def __init__(self) -> None:
        self.answers: list[bool | Exception] = []
        self.taken: queue.Queue[list[str]] = queue.Queue()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.was_closed = threading.Event()

    def send(self, observations: Sequence[Observation]) -> bool:
        self.taken.put([observation.name for observation in observations])
        self.may_answer.wait()
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.was_closed.set()
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
        assert await asyncio.to_thread(self._looked_at.wait, PATIENCE_S)
        self._looked_at.clear()


def submit(sender: ObservationSender, name: str) -> None:
    sender.submit(lambda: an_observation(name))


def an_observation(name: str) -> Observation:
    return Observation(
        kind=ObservationKind.TOOL,
        name=name,
        run_id="run_1",
        trace_id=1,
        span_id=2,
        parent_id=None,
        session_id="thr_1",
        started_at=START,
        finished_at=START,
        trace_metadata={},
    )


def taken(backend: FakeBackend) -> list[str]:
    return backend.taken.get(timeout=PATIENCE_S)


async def test_observations_are_sent_in_order_and_closing_closes_the_backend() -> None:
    backend = FakeBackend()
    sender = ObservationSender(lambda: backend, collect_s=0)

    for number in range(100):
        submit(sender, str(number))
    await sender.close(timeout_s=PATIENCE_S)

    sent = [name for batch in backend.taken.queue for name in batch]
    assert sent == [str(number) for number in range(100)]
    assert backend.was_closed.is_set()
    assert sender.dropped == 0


@pytest.mark.requirement("G1")
async def test_a_full_queue_drops_what_is_new_and_never_waits() -> None:
    backend = FakeBackend()
    backend.may_answer.clear()
    sender = ObservationSender(lambda: backend, collect_s=0, queue_size=10)
    submit(sender, "being sent")
    assert await asyncio.to_thread(taken, backend) == ["being sent"]

    for number in range(15):
        submit(sender, str(number))

    assert sender.dropped == 5
    backend.may_answer.set()
    await sender.close(timeout_s=PATIENCE_S)
    assert [name for batch in backend.taken.queue for name in batch] == [str(number) for number in range(10)]


@pytest.mark.requirement("G1")
@pytest.mark.parametrize("failure", [False, RuntimeError("backend broke")])
async def test_after_a_failure_everything_is_dropped_until_the_rest_is_over(
    failure: bool | Exception,
) -> None:
    backend, clock = FakeBackend(), HandClock()
    backend.answers = [failure]
    sender = ObservationSender(lambda: backend, collect_s=0, cooldown_s=30, monotonic=clock)
    submit(sender, "refused")
    assert await asyncio.to_thread(taken, backend) == ["refused"]
    await clock.was_looked_at()

    clock.now = 29
    submit(sender, "dropped")
    await clock.was_looked_at()
    clock.now = 31
    submit(sender, "sent")

    assert await asyncio.to_thread(taken, backend) == ["sent"]
    await sender.close(timeout_s=PATIENCE_S)
    assert sender.dropped == 2


async def test_a_record_that_cannot_be_told_does_not_take_its_neighbours_along() -> None:
    backend = FakeBackend()
    sender = ObservationSender(lambda: backend, collect_s=3_600)

    def broken() -> Observation:
        raise ValueError("a bad record")

    submit(sender, "before")
    sender.submit(broken)
    submit(sender, "after")
    await sender.close(timeout_s=PATIENCE_S)

    assert taken(backend) == ["before", "after"]
    assert sender.dropped == 1


@pytest.mark.requirement("G1")
async def test_closing_gives_up_on_a_backend_that_hangs() -> None:
    backend = FakeBackend()
    backend.may_answer.clear()
    sender = ObservationSender(lambda: backend, collect_s=0)
    submit(sender, "hanging")
    await asyncio.to_thread(taken, backend)
    submit(sender, "never sent")

    async with asyncio.timeout(PATIENCE_S):
        await sender.close(timeout_s=0.05)

    assert backend.was_closed.is_set()
    submit(sender, "too late")
    assert sender.dropped == 1
    assert backend.taken.empty()


async def test_a_backend_is_loaded_only_when_there_is_something_to_send() -> None:
    def connect() -> FakeBackend:
        raise AssertionError("loaded without need")

    sender = ObservationSender(connect)
    await sender.close(timeout_s=PATIENCE_S)

    assert sender.dropped == 0


async def test_a_backend_that_cannot_be_loaded_stops_nothing() -> None:
    def connect() -> FakeBackend:
        raise ImportError("no such package")

    sender = ObservationSender(connect, collect_s=0)
    submit(sender, "lost")
    await sender.close(timeout_s=PATIENCE_S)

    assert sender.dropped == 1
