"""A schedule: what to run, when (a cron expression in a time zone), and the results so far."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from domain.errors import ServiceError, Violation, invalid
from domain.ids import AgentId, ApiKeyId, OrganizationId, RunId, ScheduleId, ThreadId, UserId
from domain.json_value import JsonObject
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.run import MultitaskStrategy
from domain.runs.webhook import Webhook
from domain.threads.message import UserContent, is_blank

MAX_SCHEDULES = 500
"""Per organization."""
LATE_AFTER = timedelta(minutes=1)
"""A scheduled run that is not started within this time counts as missed."""
RUN_METADATA = "schedule"
"""The key in a run's metadata that holds the id of its schedule."""


class MissedFires(StrEnum):
    """How triggers are handled that were due while no process executed runs. The values are part of
    the public contract."""

    SKIP = "skip"
    """Nothing is started; the schedule waits for its next run time."""
    RUN_ONCE = "run_once"
    """One run starts as soon as possible, however many triggers were missed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleError:
    """Why a trigger started no run: a stable code and a sentence safe to show."""

    code: str
    detail: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A schedule of one organization, under a name.

    - `cron` has five fields and is evaluated in the IANA zone `timezone`.
    - The run is requested as a client would: `limits`, `model` and `tool_allowlist` narrow the
      agent's, `model_settings` replace the agent's one by one, `output_schema` the agent's. Without
      `thread_id` every run gets a new thread. `lane` None is the agent's.
    - `person_id` is the person as whom its runs act, with their accounts; None for runs that act as
      no person.
    - `version` counts changes by people; triggers do not change it.
    - `next_fire_at` is None while the schedule is paused, and if there is no next run time.
    - `last_error` describes the last trigger and is cleared by the next one that starts a run. A
      run that started and failed is not an error of the schedule.
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
    lane: Lane | None = None
    limits: LimitSettings = LimitSettings()
    model_settings: ModelSettings = NO_SETTINGS
    output_schema: JsonObject | None = None
    model: str | None = None
    tool_allowlist: tuple[str, ...] | None = None
    metadata: JsonObject = field(default_factory=dict)
    webhook: Webhook | None = None
    missed: MissedFires = MissedFires.RUN_ONCE
    enabled: bool = True
    person_id: UserId | None = None
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
        """The actor of its triggers."""
        return ApiKeyId(f"schedule:{self.id}")

    @property
    def requester(self) -> ApiKeyId:
        """Who starts its runs: its person, or itself. It replaces a key, because the key that
        created the schedule may be revoked."""
        return self.actor if self.person_id is None else ApiKeyId(self.person_id)

    def is_late(self, at: datetime) -> bool:
        return self.next_fire_at is not None and at >= self.next_fire_at + LATE_AFTER


def schedule_invalid(*wrong: Violation) -> ServiceError:
    """The error for an invalid schedule, with a violation per field."""
    return invalid("schedule_invalid", "The schedule is not valid.", *wrong)
