"""Requests that a client's library repeats by itself."""

from datetime import timedelta

from application.system.ports import Clock
from domain.runs.run import Run

_REPEATED_WITHIN = timedelta(minutes=10)
"""Libraries repeat a request at once, a few times. An equal request of later is another one."""


def is_recent(run: Run, clock: Clock) -> bool:
    """Whether a repeated request may be answered by the run that an equal one started."""
    return clock.now() - run.created_at <= _REPEATED_WITHIN
