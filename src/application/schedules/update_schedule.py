"""UpdateSchedule: change, pause or resume a schedule."""

from dataclasses import dataclass, field, replace

from application.audit.entries import audit_entry
from application.schedules.planning import next_fire
from application.schedules.ports import CronTimes, ScheduleStore
from application.schedules.schedule_checks import ScheduleChecks
from application.schedules.schedule_lookup import existing_schedule
from application.system.changes import Changes, changed_fields, with_changes
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import require_version
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonValue
from domain.schedules.schedule import Schedule

_PLANNED_BY = ("cron", "timezone", "enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateScheduleCommand:
    """`changes` are fields of `Schedule` without agent and limits; `limits` are fields of
    `LimitSettings`.

    `schedule` and `agent` are ids or names; without `agent` it stays. `expected_version` is the
    version that the client last read; None skips the check. `own_account` None leaves the person as
    they are.
    """

    principal: Principal
    schedule: str
    changes: Changes = field(default_factory=dict)
    agent: str | None = None
    limits: Changes = field(default_factory=dict)
    expected_version: int | None = None
    own_account: bool | None = None


class UpdateSchedule:
    """Rules:
    - Admins change schedules.
    - A trigger in progress starts its run with the old or the new settings.
    - Limits are merged one by one.
    - People put in their own account only. A change by others, except pausing, takes the account of
      the person out: it must not do what the person did not see, nor when they paused it.
    - A new expression or time zone, and resuming, compute the next run time from now. Triggers
      during a pause are not made up for.
    - A paused schedule can be changed even if its agent or thread is gone.
    - A request that changes nothing creates no version and no audit entry.
    - Audited as `schedule.updated` with the names of the changed fields.

    Raises: ServiceError role_insufficient, person_required, schedule_not_found, schedule_invalid,
    version_conflict, schedule_exists, and those of `ScheduleChecks.require_runnable`.
    """

    def __init__(
        self, *, schedules: ScheduleStore, checks: ScheduleChecks, times: CronTimes, clock: Clock, ids: IdSource
    ) -> None:
        self._schedules = schedules
        self._checks = checks
        self._times = times
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UpdateScheduleCommand) -> Schedule:
        principal = command.principal
        principal.require(Permission.SCHEDULES_MANAGE)
        principal.require_self()
        schedule = await existing_schedule(self._schedules, principal, command.schedule)
        require_version("schedule", schedule.version, expected=command.expected_version)
        changed = _with_account(schedule, await self._changed(schedule, command), command)
        names = changed_fields(schedule, changed)
        if not names:
            return schedule
        now = self._clock.now()
        replanned = any(name in _PLANNED_BY for name in names)
        if replanned:
            planned = next_fire(self._times, changed.cron, changed.timezone, enabled=changed.enabled, after=now)
            changed = replace(changed, next_fire_at=planned)
        changed = replace(changed, version=schedule.version + 1, updated_at=now)
        said: list[JsonValue] = [*names]
        audit = audit_entry(
            principal,
            AuditAction.SCHEDULE_UPDATED,
            schedule.id,
            ids=self._ids,
            at=now,
            details={"name": changed.name, "version": changed.version, "changed": said, "enabled": changed.enabled},
        )
        await self._schedules.save(changed, expected_version=schedule.version, replanned=replanned, audit=audit)
        return changed

    async def _changed(self, schedule: Schedule, command: UpdateScheduleCommand) -> Schedule:
        agent_id = schedule.agent_id
        agent = None
        if command.agent is not None:
            agent = await self._checks.agent(command.principal, command.agent)
            agent_id = agent.id
        limits = with_changes(schedule.limits, command.limits)
        changed = with_changes(schedule, {**command.changes, "agent_id": agent_id, "limits": limits})
        if changed == schedule:
            return schedule
        self._checks.require_times(changed.cron, changed.timezone)
        if changed.enabled:
            agent = agent or await self._checks.agent(command.principal, agent_id)
            await self._checks.require_runnable(command.principal, changed, agent)
        elif changed.thread_id != schedule.thread_id:
            await self._checks.require_thread(command.principal, changed)
        return changed


def _with_account(schedule: Schedule, changed: Schedule, command: UpdateScheduleCommand) -> Schedule:
    principal = command.principal
    if command.own_account is not None:
        return replace(changed, person_id=principal.require_person() if command.own_account else None)
    is_own = schedule.person_id in (None, principal.person_id)
    if is_own or changed in (schedule, replace(schedule, enabled=False)):
        return changed
    return replace(changed, person_id=None)
