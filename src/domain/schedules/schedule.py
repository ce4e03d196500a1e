"""A schedule: what is run, when by a cron expression in a time zone, and what became of it so far."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from domain.errors import ServiceError, Violation, invalid
from domain.ids import AgentId, ApiKeyId, OrganizationId, RunId, ScheduleId, ThreadId
from domain.json_value import JsonObject
from domain.runs.limits import LimitSettings
from domain.runs.run import MultitaskStrategy
from domain.runs.webhook import Webhook
from domain.threads.message import UserContent, is_blank

MAX_SCHEDULES = 500
"""Of one organization."""
LATE_AFTER = timedelta(minutes=1)
"""A fire that nobody saw to for so long was missed."""
RUN_METADATA = "schedule"
"""Under this name the metadata of a run says which schedule began it."""


class MissedFires(StrEnum):
    """What becomes of fires that were due while nothing executed runs; values are part of the public contract."""

    SKIP = "skip"
    """Nothing: the schedule waits for its next time."""
    RUN_ONCE = "run_once"
    """One run, as soon as it can be, however many were missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleError:
    """Why a fire began no run: a stable code and a sentence safe to show."""

    code: str
    detail: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule of one organization, under a name.

    `cron` has five fields and is read in the IANA zone `timezone`. The run is asked for as by a client: `limits`, `model`
    and `tool_allowlist` narrow the agent's; without `thread_id` every run gets a thread of its own. `version` counts what
    people change, fires do not. `next_fire_at` is None while the schedule is paused, and where there is no next time.
    `last_error` is about the last fire, and gone once one begins a run again; the three `last_…` never stand in for each
    other: a run that began and failed is no error of the schedule.
    """

    id: ScheduleId
    organization_id: OrganizationId
    name: str
    cron: str
    timezone: str
    agent_id: AgentId
    input: tuple[UserContent, ...]
    thread_id: ThreadId | None = None
    strategy: MultitaskStrategy = MultitaskStrategy.ENQUEUE
    limits: LimitSettings = LimitSettings()
    model: str | None = None
    tool_allowlist: tuple[str, ...] | None = None
    metadata: JsonObject = field(default_factory=dict)
    webhook: Webhook | None = None
    missed: MissedFires = MissedFires.RUN_ONCE
    enabled: bool = True
    next_fire_at: datetime | None = None
    last_fired_at: datetime | None = None
    last_run_id: RunId | None = None
    last_error: ScheduleError | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        wrong = []
        if not self.name.strip():
            wrong.append(Violation(path="name", message="must not be empty"))
        if is_blank(self.input):
            wrong.append(Violation(path="input", message="must not be empty"))
        if RUN_METADATA in self.metadata:
            message = "is what says in each run's metadata which schedule began it"
            wrong.append(Violation(path=f"metadata.{RUN_METADATA}", message=message))
        if wrong:
            raise schedule_invalid(*wrong)

    @property
    def actor(self) -> ApiKeyId:
        """As whom its runs act, in the place of a key: the one that made the schedule may be revoked by then."""
        return ApiKeyId(f"schedule:{self.id}")

    def is_late(self, at: datetime) -> bool:
        """Whether the fire that is due was missed."""
        return self.next_fire_at is not None and at >= self.next_fire_at + LATE_AFTER


def schedule_invalid(*wrong: Violation) -> ServiceError:
    """What is wrong with a schedule, by the names of its fields."""
    return invalid("schedule_invalid", "The schedule is not valid.", *wrong)
