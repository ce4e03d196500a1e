"""CreateSchedule: create a schedule that starts runs at cron times."""

from dataclasses import dataclass, field

from application.audit.entries import audit_entry
from application.schedules.planning import next_fire
from application.schedules.ports import CronTimes, ScheduleStore
from application.schedules.schedule_checks import ScheduleChecks
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import ScheduleId, ThreadId
from domain.json_value import JsonObject
from domain.runs.lane import Lane
from domain.runs.limits import LimitSettings
from domain.runs.model_settings import NO_SETTINGS, ModelSettings
from domain.runs.run import MultitaskStrategy
from domain.runs.webhook import Webhook
from domain.schedules.schedule import MissedFires, Schedule
from domain.threads.message import UserContent


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateScheduleCommand:
    """`agent` is an id or a name; the other fields are those of `Schedule`."""

    principal: Principal
    name: str
    cron: str
    agent: str
    input: tuple[UserContent, ...]
    timezone: str = "UTC"
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
    own_account: bool = False


class CreateSchedule:
    """Rules:
    - Admins create schedules: the runs act for the organization, also after the creating key is
      gone.
    - With `own_account` the runs act as the person who creates it, with their accounts; a key has
      none.
    - Audited as `schedule.created`.

    Raises: ServiceError role_insufficient, person_required, schedule_invalid, schedule_exists,
    too_many_schedules, and those of `ScheduleChecks.require_runnable`.
    """

    def __init__(
        self, *, schedules: ScheduleStore, checks: ScheduleChecks, times: CronTimes, clock: Clock, ids: IdSource
    ) -> None:
        self._schedules = schedules
        self._checks = checks
        self._times = times
        self._clock = clock
        self._ids = ids

    async def execute(self, command: CreateScheduleCommand) -> Schedule:
        """Returns the schedule with its first run time."""
        principal = command.principal
        principal.require(Permission.SCHEDULES_MANAGE)
        principal.require_self()
        self._checks.require_times(command.cron, command.timezone)
        agent = await self._checks.agent(principal, command.agent)
        now = self._clock.now()
        schedule = Schedule(
            id=ScheduleId(self._ids.new("sch")),
            organization_id=principal.organization_id,
            name=command.name,
            cron=command.cron,
            timezone=command.timezone,
            agent_id=agent.id,
            input=command.input,
            thread_id=command.thread_id,
            strategy=command.strategy,
            lane=command.lane,
            limits=command.limits,
            model_settings=command.model_settings,
            output_schema=command.output_schema,
            model=command.model,
            tool_allowlist=command.tool_allowlist,
            metadata=command.metadata,
            webhook=command.webhook,
            missed=command.missed,
            enabled=command.enabled,
            person_id=principal.require_person() if command.own_account else None,
            next_fire_at=next_fire(self._times, command.cron, command.timezone, enabled=command.enabled, after=now),
            created_at=now,
            updated_at=now,
        )
        await self._checks.require_runnable(principal, schedule, agent)
        audit = audit_entry(
            principal,
            AuditAction.SCHEDULE_CREATED,
            schedule.id,
            ids=self._ids,
            at=now,
            details={
                "name": schedule.name,
                "cron": schedule.cron,
                "timezone": schedule.timezone,
                "agent_id": agent.id,
                "enabled": schedule.enabled,
            },
        )
        await self._schedules.add(schedule, audit)
        return schedule
