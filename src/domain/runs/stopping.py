"""Cancellation of a run."""

from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError
from domain.runs.change import RunChange, RunFacts
from domain.runs.closing import cancelled_step
from domain.runs.run import RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancellation:
    """Rules:
    - An ended run stays unchanged.
    - The worker of a run in progress is requested to stop.
    - Any other run is cancelled at once, and its open calls get a failure as result.
    """

    actor: str
    at: datetime

    def decide(self, facts: RunFacts) -> RunChange | None:
        run = facts.run
        if run.status.is_terminal:
            return None
        if run.status is RunStatus.IN_PROGRESS:
            return RunChange(run=run, stop_requested_by=self.actor)
        return RunChange(run=run, step=cancelled_step(run, facts.open_calls, at=self.at, actor=self.actor))


def run_not_yours() -> ServiceError:
    return ServiceError(
        "run_not_yours",
        ErrorKind.FORBIDDEN,
        "Another key created this run; acting on it requires the role operator.",
    )
