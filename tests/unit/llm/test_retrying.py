"""Retries and fallbacks: which attempt follows which failure, and after what wait."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from application.models.ports import (
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ModelRetrying,
    RetryLimits,
    TextDelta,
)
from domain.runs.finish_reason import FinishReason
from domain.runs.usage import ModelUsage
from infrastructure.llm.retrying import RetryingModels, RetryPlan
from tests.unit.llm.model_requests import a_request, all_events

BUSY = ModelError("model_rate_limited", "Too many requests.", retryable=True)
DOWN = ModelError("model_unavailable", "Down.", retryable=True)
REFUSED = ModelError("model_auth", "No.", retryable=False)


def asking(seconds: float) -> ModelError:
    return ModelError("model_rate_limited", "Later.", retryable=True, retry_after_s=seconds)


class FailingModel:
    """Fails as told, attempt by attempt, then replies. A failure comes after a piece of text."""

    def __init__(self, *failures: ModelError) -> None:
        self._failures = list(failures)
        self.asked: list[str] = []
        self.closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.asked.append(request.model)
        try:
            if self._failures:
                yield TextDelta(text="hal")
                raise self._failures.pop(0)
            yield TextDelta(text="Hello")
            yield ModelReply(
                model=request.model, text="Hello", calls=(), usage=ModelUsage(), finish_reason=FinishReason.STOP
            )
        finally:
            self.closed += 1


class Waits:
    """Stands in for sleeping."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def retrying(model: FailingModel, waits: Waits | None = None, *, chance: float = 0.5) -> RetryingModels:
    plan = RetryPlan(attempts=3, base_s=1.0, cap_s=20.0)
    return RetryingModels(model, plan=plan, sleep=waits or Waits(), chance=lambda: chance)


@pytest.mark.requirement("A11")
async def test_each_new_attempt_is_told_of_and_the_reply_comes_last() -> None:
    model = FailingModel(BUSY, DOWN)
    events = await all_events(retrying(model).stream(a_request("openai:a"), ()))
    assert events == [
        TextDelta(text="hal"),
        ModelRetrying(model="openai:a", attempt=2, reason="model_rate_limited", wait_s=0.5),
        TextDelta(text="hal"),
        ModelRetrying(model="openai:a", attempt=3, reason="model_unavailable", wait_s=1.0),
        TextDelta(text="Hello"),
        ModelReply(model="openai:a", text="Hello", calls=(), usage=ModelUsage(), finish_reason=FinishReason.STOP),
    ]
    assert model.closed == 3


@pytest.mark.requirement("A11")
async def test_exhausted_models_give_way_to_the_next_in_order() -> None:
    model = FailingModel(*[DOWN] * 6)
    events = await all_events(retrying(model).stream(a_request("openai:a"), ("openai:b", "anthropic:c")))
    assert model.asked == ["openai:a"] * 3 + ["openai:b"] * 3 + ["anthropic:c"]
    retries = [event for event in events if isinstance(event, ModelRetrying)]
    assert [(event.model, event.attempt) for event in retries] == [
        ("openai:a", 2),
        ("openai:a", 3),
        ("openai:b", 4),
        ("openai:b", 5),
        ("openai:b", 6),
        ("anthropic:c", 7),
    ]
    assert isinstance(events[-1], ModelReply)
    assert events[-1].model == "anthropic:c"


@pytest.mark.requirement("A11")
async def test_an_error_that_retrying_cannot_mend_goes_straight_to_the_next_model() -> None:
    model, waits = FailingModel(REFUSED), Waits()
    await all_events(retrying(model, waits).stream(a_request("openai:a"), ("openai:b",)))
    assert model.asked == ["openai:a", "openai:b"]
    assert waits.seconds == []


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(("failures", "raised"), [([DOWN, DOWN, BUSY], BUSY), ([REFUSED], REFUSED)])
async def test_the_last_error_is_raised_when_all_models_are_exhausted(
    failures: list[ModelError], raised: ModelError
) -> None:
    with pytest.raises(ModelError) as caught:
        await all_events(retrying(FailingModel(*failures)).stream(a_request(), ()))
    assert caught.value is raised


@pytest.mark.requirement("A11")
async def test_waits_grow_and_are_random_up_to_their_bound() -> None:
    waits = Waits()
    request = a_request(retries=RetryLimits(attempts=7))
    await all_events(retrying(FailingModel(*[DOWN] * 6), waits, chance=0.5).stream(request, ()))
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0]  # halves of 1, 2, 4, 8, 16, and of the cap


@pytest.mark.requirement("A11")
async def test_the_provider_is_not_asked_again_before_the_time_it_named() -> None:
    waits = Waits()
    await all_events(retrying(FailingModel(asking(7.0)), waits, chance=0.25).stream(a_request(), ()))
    assert waits.seconds == [7.25]


@pytest.mark.requirement("A11")
async def test_the_last_model_is_asked_until_the_waiting_time_of_the_call_is_used_up() -> None:
    waits = Waits()
    request = a_request(retries=RetryLimits(attempts=99, total_s=40.0))
    with pytest.raises(ModelError) as raised:
        await all_events(retrying(FailingModel(*[DOWN] * 99), waits).stream(request, ()))
    assert raised.value is DOWN
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@pytest.mark.requirement("A11")
async def test_models_before_the_last_one_have_few_attempts_and_share_the_waiting_time() -> None:
    model, waits = FailingModel(*[DOWN] * 99), Waits()
    request = a_request("openai:a", retries=RetryLimits(attempts=5, total_s=4.0))
    with pytest.raises(ModelError):
        await all_events(retrying(model, waits).stream(request, ("openai:b",)))
    assert model.asked == ["openai:a"] * 3 + ["openai:b"] * 3
    assert waits.seconds == [0.5, 1.0, 0.5, 1.0]


@pytest.mark.requirement("A11")
@pytest.mark.parametrize(("asked_s", "waited"), [(50.0, [50.5]), (59.9, [60.0]), (61.0, [])])
async def test_the_last_model_may_ask_for_all_of_the_waiting_time(asked_s: float, waited: list[float]) -> None:
    waits = Waits()
    events = retrying(FailingModel(asking(asked_s)), waits).stream(a_request(), ())
    if waited:
        assert isinstance((await all_events(events))[-1], ModelReply)
    else:
        with pytest.raises(ModelError):
            await all_events(events)
    assert waits.seconds == waited


@pytest.mark.requirement("A11")
@pytest.mark.parametrize("code", ["model_invalid_reply", "model_stalled"])
async def test_a_reply_that_begins_and_fails_is_not_paid_for_again_and_again(code: str) -> None:
    broken = ModelError(code, "Broken.", retryable=True)
    model = FailingModel(*[broken] * 9)
    with pytest.raises(ModelError):
        await all_events(retrying(model).stream(a_request(retries=RetryLimits(attempts=9)), ()))
    assert len(model.asked) == 3


async def test_one_attempt_is_one_attempt() -> None:
    model = FailingModel(DOWN)
    with pytest.raises(ModelError):
        await all_events(retrying(model).stream(a_request(retries=RetryLimits(attempts=1)), ()))
    assert len(model.asked) == 1


async def test_a_provider_that_asks_for_too_long_a_wait_gives_way_to_the_next_model() -> None:
    model, waits = FailingModel(asking(21.0)), Waits()
    await all_events(retrying(model, waits).stream(a_request("openai:a"), ("openai:b",)))
    assert model.asked == ["openai:a", "openai:b"]
    assert waits.seconds == []


async def test_leaving_early_ends_the_request_at_once() -> None:
    model = FailingModel()
    events = retrying(model).stream(a_request(), ())
    async with aclosing(events):  # type: ignore[type-var]
        await anext(events)
        assert model.closed == 0
    assert model.closed == 1


@pytest.mark.requirement("A11")
async def test_a_stream_without_reply_counts_as_a_failure() -> None:
    class Silent:
        async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
            yield TextDelta(text="so")

    with pytest.raises(ModelError) as raised:
        await all_events(RetryingModels(Silent()).stream(a_request(retries=RetryLimits(attempts=1)), ()))
    assert raised.value.code == "model_invalid_reply"


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"base_s": -1.0}, {"cap_s": -1.0}])
def test_a_plan_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="at least one attempt"):
        RetryPlan(**wrong)  # type: ignore[arg-type]
