"""Several deployments of one provider: shares, stickiness, pauses."""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from application.models.ports import ModelError, ModelEvent, ModelReply, ModelRequest, TextDelta
from domain.ids import ThreadId
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.deployments import (
    COOL_DOWN_S,
    MAX_COOL_DOWN_S,
    REFUSED_COOL_DOWN_S,
    DeploymentModels,
    OpenDeployment,
)
from tests.unit.llm.model_requests import a_request, a_user_message, all_events


def limited(retry_after_s: float | None = None) -> ModelError:
    return ModelError("model_rate_limited", "Too fast.", retryable=True, retry_after_s=retry_after_s)


class Place:
    """A deployment that answers its name, or fails with `error`, after a piece of text if
    `late`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: ModelError | None = None
        self.late = False
        self.asked = 0
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        try:
            if self.error is None or self.late:
                yield TextDelta(text=self.name)
            if self.error is not None:
                raise self.error
            yield ModelReply(
                model=request.model,
                text=self.name,
                calls=(),
                usage=ModelUsage(),
                finish_reason=FinishReason.STOP,
            )
        finally:
            self.closed += 1


class Places:
    """Deployments `a`, `b`, `c`, and the time."""

    def __init__(self, **weights: int) -> None:
        self.now = 100.0
        self.all = {name: Place(name) for name in weights}
        self.models = DeploymentModels(
            [OpenDeployment(name=name, weight=weight, models=self.all[name]) for name, weight in weights.items()],
            monotonic=lambda: self.now,
        )

    async def answers(self, thread: int = 1) -> str:
        """The name of the deployment that answers a thread."""
        events = await all_events(self.models.stream(of_thread(thread)))
        reply = events[-1]
        assert isinstance(reply, ModelReply)
        return reply.text

    async def refused(self, thread: int = 1) -> ModelError:
        with pytest.raises(ModelError) as raised:
            await self.answers(thread)
        return raised.value

    async def first_for(self, name: str) -> int:
        """A thread that prefers this deployment."""
        for thread in range(1, 1_000):
            if await self.answers(thread) == name:
                return thread
        raise AssertionError(name)


def of_thread(number: int) -> ModelRequest:
    message = replace(a_user_message(), thread_id=ThreadId(f"thr_{number}"))
    return a_request("acme:m", messages=(message,))


@pytest.mark.requirement("H6")
async def test_a_thread_stays_with_its_deployment() -> None:
    places = Places(a=1, b=1, c=1)
    for thread in range(20):
        assert len({await places.answers(thread) for _ in range(3)}) == 1


@pytest.mark.requirement("H6")
async def test_each_deployment_has_its_share_of_the_threads() -> None:
    places = Places(a=1, b=3)
    shares = Counter([await places.answers(thread) for thread in range(2_000)])
    assert 0.70 < shares["b"] / 2_000 < 0.80


async def test_a_new_deployment_takes_threads_and_moves_no_others() -> None:
    before, after = Places(a=1, b=1), Places(a=1, b=1, c=1)
    moved = [
        (await before.answers(thread), await after.answers(thread))
        for thread in range(300)
        if await before.answers(thread) != await after.answers(thread)
    ]
    assert moved
    assert {to for _, to in moved} == {"c"}
    assert {of for of, _ in moved} == {"a", "b"}


@pytest.mark.requirement("H6")
@pytest.mark.parametrize(
    ("error", "pause_s"),
    [
        (limited(), COOL_DOWN_S),
        (limited(retry_after_s=42.0), 42.0),
        (limited(retry_after_s=7_200.0), MAX_COOL_DOWN_S),
        (ModelError("model_rate_limited", "No quota.", retryable=False), REFUSED_COOL_DOWN_S),
        (ModelError("model_auth", "Bad key.", retryable=False), REFUSED_COOL_DOWN_S),
        (ModelError("model_unavailable", "Down.", retryable=True), COOL_DOWN_S),
        (ModelError("model_timeout", "Slow.", retryable=True), COOL_DOWN_S),
    ],
)
async def test_one_that_refuses_pauses_and_the_next_one_answers(error: ModelError, pause_s: float) -> None:
    places = Places(a=1, b=1)
    thread = await places.first_for("a")
    first = places.all["a"]
    first.error = error
    assert await places.answers(thread) == "b"
    asked = first.asked
    places.now += pause_s - 0.1
    assert await places.answers(thread) == "b"
    assert first.asked == asked
    first.error = None
    places.now += 0.2
    assert await places.answers(thread) == "a"


@pytest.mark.requirement("H6")
async def test_a_fault_of_the_request_goes_nowhere_else() -> None:
    places = Places(a=1, b=1)
    thread = await places.first_for("a")
    places.all["a"].error = ModelError("model_rejected", "Bad request.", retryable=False)
    asked = places.all["b"].asked
    assert (await places.refused(thread)).code == "model_rejected"
    assert places.all["b"].asked == asked
    places.all["a"].error = None
    assert await places.answers(thread) == "a"


@pytest.mark.requirement("H6")
async def test_after_the_first_text_the_failure_is_told_and_the_next_attempt_goes_elsewhere() -> None:
    places = Places(a=1, b=1)
    thread = await places.first_for("a")
    places.all["a"].error, places.all["a"].late = ModelError("model_stalled", "Silent.", retryable=True), True
    assert (await places.refused(thread)).code == "model_stalled"
    assert await places.answers(thread) == "b"


@pytest.mark.requirement("H6")
async def test_if_all_pause_the_one_whose_pause_ends_first_is_asked_alone() -> None:
    places = Places(a=1, b=1)
    thread = await places.first_for("a")
    places.all["a"].error, places.all["b"].error = limited(retry_after_s=30), limited(retry_after_s=20)
    assert (await places.refused(thread)).retry_after_s == 20
    asked = places.all["a"].asked
    assert (await places.refused(thread)).retry_after_s == 20
    assert places.all["a"].asked == asked
    places.all["b"].error = None
    assert await places.answers(thread) == "b"


async def test_streams_of_failed_deployments_are_closed() -> None:
    places = Places(a=1, b=1)
    thread = await places.first_for("a")
    places.all["a"].error = limited()
    await places.answers(thread)
    assert {place.asked - place.closed for place in places.all.values()} == {0}


@pytest.mark.requirement("A12")
async def test_closing_the_stream_closes_that_of_the_deployment() -> None:
    places = Places(a=1)
    events = places.models.stream(of_thread(1))
    await anext(aiter(events))
    await events.aclose()  # type: ignore[attr-defined]
    assert places.all["a"].closed == 1
