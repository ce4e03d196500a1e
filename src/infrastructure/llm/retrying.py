"""Retries and fallbacks around a LanguageModel."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelReply, ModelRequest, ModelRetrying

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPlan:
    """`attempts` per model. The wait before attempt n+1 is random between 0 and `base_s`·2ⁿ⁻¹, at
    most `cap_s` (full jitter), and never less than the provider's retry-after. A model with a
    retry-after above `cap_s` is given up."""

    attempts: int = 3
    base_s: float = 0.5
    cap_s: float = 30.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.base_s < 0 or self.cap_s < 0:
            raise ValueError("a retry plan needs at least one attempt and waits that are not negative")

    def wait_s(self, failed: int, error: ModelError, chance: float) -> float | None:
        """The wait after the `failed`-th attempt; None gives the model up. `chance` is in [0, 1)."""
        asked_s = error.retry_after_s or 0.0
        if not error.retryable or failed >= self.attempts or asked_s > self.cap_s:
            return None
        jitter_s: float = chance * min(self.cap_s, self.base_s * 2 ** (failed - 1))
        # Added to the retry-after: clients with the same retry-after would otherwise return
        # together.
        return asked_s + jitter_s


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
        attempt = 0
        models = (request.model, *fallbacks)
        for name, after in zip(models, (*fallbacks, None), strict=True):
            candidate = request if name == request.model else replace(request, model=name)
            for failed in range(1, self._plan.attempts + 1):
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
                wait_s = self._plan.wait_s(failed, error, self._chance())
                successor = after if wait_s is None else name
                _log_failure(request, name, attempt, error, successor)
                if successor is None:
                    raise error
                yield ModelRetrying(
                    model=successor, attempt=attempt + 1, reason=error.code, provider_error=error.provider_error
                )
                if wait_s is None:
                    break
                await self._sleep(wait_s)


def _log_failure(request: ModelRequest, model: str, attempt: int, error: ModelError, successor: str | None) -> None:
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
        },
    )
