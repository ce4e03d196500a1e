"""Answers about schedules, as far as commands read them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleError:
    """Why the last fire began no run."""

    code: str
    detail: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule."""

    id: str
    name: str
    cron: str
    timezone: str
    agent_id: str
    thread_id: str | None = None
    model: str | None = None
    multitask_strategy: str = ""
    missed: str = ""
    enabled: bool = True
    next_fire_at: str | None = None
    last_fired_at: str | None = None
    last_run_id: str | None = None
    last_error: ScheduleError | None = None
    version: int = 1
    created_at: str = ""
