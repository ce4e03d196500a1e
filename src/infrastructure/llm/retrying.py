"""Retries and fallbacks around a LanguageModel."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from itertools import count

from application.models.ports import (
    LanguageModel,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    ModelRetrying,
    RetryLimits,
)

logger = logging.getLogger(__name__)

PATIENT = frozenset({"model_rate_limited", "model_unavailable"})
"""Codes of errors that a provider recovers from, usually before it bills anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPlan:
    """`attempts` of a model that has a successor, and of any model whose replies break off or are
    invalid. The last model has those of the request for other errors (PATIENT). The wait
    before attempt n+1 is random between 0 and `base_s`·2ⁿ⁻¹, at most `cap_s` (full jitter), and
    never less than the provider's retry-after. A model with a successor is given up if its
    retry-after is above `cap_s`."""

    attempts: int = 3
    base_s: float = 0.5
    cap_s: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.base_s < 0 or self.cap_s < 0:
            raise ValueError("a retry plan needs at least one attempt and waits that are not negative")

    def wait_s(
        self, failed: int, error: ModelError, chance: float, *, left: RetryLimits, is_last: bool, wasted: int = 0
    ) -> float | None:
        """The wait after the `failed`-th attempt; None gives the model up. `chance` is in [0, 1).
        `left` are the attempts of the model and the waiting time that the call has left. `wasted`
        counts the attempts whose reply may be billed."""
        asked_s = error.retry_after_s or 0.0
        attempts = left.attempts if is_last else min(left.attempts, self.attempts)
        if (
            not error.retryable
            or failed >= attempts
            or wasted >= self.attempts
            or (asked_s > self.cap_s and not is_last)
        ):
            return None
        jitter_s: float = chance * min(self.cap_s, self.base_s * 2 ** min(failed - 1, 30))
        # Added to the retry-after: clients with the same retry-after would otherwise return
        # together.
        wait_s = asked_s + jitter_s
        if asked_s > left.total_s or (wait_s > left.total_s and not asked_s):
            return None
        return min(wait_s, left.total_s)


class RetryingModels:
    """FallbackModels over one LanguageModel for all providers. A permanent error moves on to the
    next model, with possibly another key, window or provider."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        plan: RetryPlan | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._model = model
        self._plan = plan or RetryPlan()
        self._sleep = sleep
        self._chance = chance

    async def stream(self, request: ModelRequest, fallbacks: tuple[str, ...]) -> AsyncIterator[ModelEvent]:
        """The events of the first successful attempt. A ModelRetrying follows each failed attempt,
        before the wait."""
        attempt, waited_s = 0, 0.0
        models = (request.model, *fallbacks)
        for name, after in zip(models, (*fallbacks, None), strict=True):
            candidate = request if name == request.model else replace(request, model=name)
            wasted = 0
            for failed in count(1):
                attempt += 1
                events = self._model.stream(candidate)
                try:
                    try:
                        async for event in events:
                            yield event
                            if isinstance(event, ModelReply):
                                return
                    finally:
                        # Closed here, not by the garbage collector.
                        if isinstance(events, AsyncGenerator):
                            await events.aclose()
                    error = ModelError("model_invalid_reply", "The model's stream had no reply.", retryable=True)
                except ModelError as raised:
                    error = raised
                wasted += error.code not in PATIENT
                left = replace(request.retries, total_s=request.retries.total_s - waited_s)
                wait_s = self._plan.wait_s(
                    failed, error, self._chance(), left=left, is_last=after is None, wasted=wasted
                )
                successor = after if wait_s is None else name
                _log_failure(request, name, attempt, error, successor=successor, wait_s=wait_s)
                if successor is None:
                    raise error
                yield ModelRetrying(
                    model=successor,
                    attempt=attempt + 1,
                    reason=error.code,
                    wait_s=wait_s or 0.0,
                    provider_error=error.provider_error,
                )
                if wait_s is None:
                    break
                waited_s += wait_s
                await self._sleep(wait_s)


def _log_failure(
    request: ModelRequest,
    model: str,
    attempt: int,
    error: ModelError,
    *,
    successor: str | None,
    wait_s: float | None,
) -> None:
    logger.warning(
        "model call failed",
        extra={
            "run_id": request.run_id,
            "turn": request.turn,
            "model": model,
            "attempt": attempt,
            "code": error.code,
            "detail": error.detail,
            "next_model": successor,
            "wait_s": None if wait_s is None else round(wait_s, 3),
        },
    )
