"""Admission of runs: at most so many may be queued, and at most so many may run at a time."""

import math
from dataclasses import dataclass
from datetime import datetime

from domain.errors import ErrorKind, ServiceError, Violation
from domain.ids import UserId
from domain.runs.called_by import CalledBy
from domain.runs.run import Run

MAX_QUEUED = 10_000_000
MAX_RUNNING = 1_000_000
_LONGEST_RETRY_S = 60
ACTIVE_RETRY_S = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """How many runs of the organization, and of the agent, may be queued at most, and how many runs
    of the user who starts this one may be queued or in progress. None sets no bound."""

    organization: int | None = None
    agent: int | None = None
    of_user: "UserBound | None" = None

    @property
    def is_bounded(self) -> bool:
        return self.organization is not None or self.agent is not None or self.of_user is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserBound:
    """At most so many runs of the user may be queued or in progress, `with_keys` those of keys that
    the user made too."""

    user_id: UserId
    max_active: int
    with_keys: bool = False


def bound_violations(max_queued: int | None, max_running: int | None) -> list[Violation]:
    """The faults of the settings of these names."""
    return [
        Violation(path=name, message=f"must be 1 to {most}")
        for name, bound, most in (("max_queued", max_queued, MAX_QUEUED), ("max_running", max_running, MAX_RUNNING))
        if bound is not None and not 0 < bound <= most
    ]


def has_place_of_caller(run: Run) -> bool:
    """Whether a run called this one and waits for it. Both have that run's place: if this one
    waited for another, the caller could keep it from ever running. A retry has no caller that
    waits."""
    called_by = CalledBy.of(run.metadata)
    return called_by is not None and called_by.run_id is not None and run.retry_of is None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedRuns:
    """How many runs are queued, and since when the first of those that were not begun yet."""

    count: int
    since: datetime | None


def require_place(owner: str, limit: int, queued: QueuedRuns, *, at: datetime) -> None:
    """Raises LIMIT `queue_full`, with the `position` that the run would have, when `limit` runs are
    queued already. `retry_after_s` estimates when a place is free: runs leave the queue as fast as
    the oldest one has moved up."""
    if queued.count < limit:
        return
    waited_s = 0.0 if queued.since is None else max(0.0, (at - queued.since).total_seconds())
    seconds = min(max(1, math.ceil(waited_s / max(queued.count, 1))), _LONGEST_RETRY_S)
    raise ServiceError(
        "queue_full",
        ErrorKind.LIMIT,
        f"{queued.count} runs of the {owner} are queued, and at most {limit} may be. Try again in {seconds} s.",
        extra={"retry_after_s": str(seconds), "position": str(queued.count + 1), "limited": owner},
    )


def require_active_place(bound: UserBound, active: int) -> None:
    """Raises LIMIT `user_runs_full` when `active` runs of the user are queued or in progress
    already. When one of them ends is not known, so `retry_after_s` is a guess."""
    if active < bound.max_active:
        return
    raise ServiceError(
        "user_runs_full",
        ErrorKind.LIMIT,
        f"{active} runs of the user are queued or in progress, and at most {bound.max_active} may be."
        f" Try again when one has ended, or in {ACTIVE_RETRY_S} s.",
        extra={"retry_after_s": str(ACTIVE_RETRY_S), "limited": "user"},
    )
