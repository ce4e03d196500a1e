"""LanguageModel over several deployments of one provider. Above: model routing. Below: an adapter
for each deployment."""

import logging
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from application.models.ports import LanguageModel, ModelError, ModelEvent, ModelRequest

logger = logging.getLogger(__name__)

COOL_DOWN_S = 10.0
"""Pause of a deployment that failed without a retry-after."""
REFUSED_COOL_DOWN_S = 60.0
"""Pause of a deployment whose key was refused or whose quota is used up."""
MAX_COOL_DOWN_S = 300.0
_ELSEWHERE = frozenset({"model_auth", "model_rate_limited", "model_unavailable", "model_timeout", "model_stalled"})
"""Errors that another deployment may not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenDeployment:
    name: str
    weight: int
    models: LanguageModel


class DeploymentModels:
    """Rules:
    - Each thread has an order of the deployments, by weighted rendezvous hashing: the first one
      gets its requests, so that the provider's prompt cache is hit, and each deployment is first
      for its share of the threads.
    - A deployment that limits the rate, fails or refuses its key pauses, for its retry-after if it
      names one.
    - Before the first event, a failed request goes to the thread's next deployment that does not
      pause.
    - If all pause, the one whose pause ends first is asked.

    Pauses are of this process. Raises the last ModelError.
    """

    def __init__(
        self, deployments: Sequence[OpenDeployment], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._deployments = tuple(deployments)
        self._monotonic = monotonic
        self._paused_until: dict[str, float] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        waiting = self._order(request)
        while True:
            deployment = waiting.pop(0)
            begun = False
            events = deployment.models.stream(request)
            try:
                async for event in events:
                    begun = True
                    yield event
                self._paused_until.pop(deployment.name, None)
                return
            except ModelError as error:
                if error.code not in _ELSEWHERE:
                    raise
                self._pause(deployment, error)
                if begun or not waiting:
                    raise
                _log_failure(request, deployment.name, error)
            finally:
                if isinstance(events, AsyncGenerator):
                    await events.aclose()

    def _order(self, request: ModelRequest) -> list[OpenDeployment]:
        """The thread's deployments that do not pause, else the one whose pause ends first."""
        now = self._monotonic()
        ready = [entry for entry in self._deployments if self._paused_until.get(entry.name, 0.0) <= now]
        if not ready:
            return [min(self._deployments, key=lambda entry: self._paused_until[entry.name])]
        thread = request.messages[-1].thread_id if request.messages else request.run_id
        return sorted(ready, key=lambda entry: _rank(thread, entry))

    def _pause(self, deployment: OpenDeployment, error: ModelError) -> None:
        default_s = COOL_DOWN_S if error.retryable else REFUSED_COOL_DOWN_S
        pause_s = min(error.retry_after_s or default_s, MAX_COOL_DOWN_S)
        self._paused_until[deployment.name] = self._monotonic() + pause_s


def _rank(thread: str, deployment: OpenDeployment) -> float:
    """Lowest for the deployment that the thread prefers. Exponentially distributed with the weight
    as its rate, so the deployments have their shares, and a new one takes threads from all others
    evenly."""
    digest = blake2b(f"{thread} {deployment.name}".encode(), digest_size=8).digest()
    uniform = (int.from_bytes(digest) + 1) / (2**64 + 1)
    return -math.log(uniform) / deployment.weight


def _log_failure(request: ModelRequest, deployment: str, error: ModelError) -> None:
    said = error.provider_error
    logger.warning(
        "deployment failed; trying the next one",
        extra={
            "run_id": request.run_id,
            "organization_id": request.organization_id,
            "turn": request.turn,
            "model": request.model,
            "deployment": deployment,
            "code": error.code,
            "detail": error.detail,
            "http_status": None if said is None else said.status,
            "provider_code": None if said is None else said.code,
        },
    )
