"""FireSchedules: starts the runs of schedules when they are due."""

import asyncio
import logging
from datetime import datetime

from application.identity.ports import UserAccess
from application.runs.start_run import StartRun, StartRunCommand
from application.schedules.ports import SCHEDULES_TOPIC, CronTimes, DueSchedule, DueSchedules, ScheduleStore
from application.system.periodic import when_due
from application.system.ports import Clock
from application.system.wakeups import Wakeups
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ScheduleId
from domain.schedules.firing import Firing, not_fired_audit
from domain.schedules.schedule import RUN_METADATA, MissedFires, Schedule, ScheduleError

logger = logging.getLogger(__name__)

REREAD_S = 30.0
"""How often schedules are checked without a notification: another process may have added one, or
the clock may have changed."""
_RETRY_S = 5.0
_BATCH = 100
_AT_ONCE = 8


class FireSchedules:
    """Rules:
    - Every process that executes runs checks for due schedules, and each trigger starts at most one
      run.
    - The run, its first event, the audit entry and the schedule's next run time are stored in one
      transaction. It fails if the schedule has moved on or was changed since it was read.
    - Hence no trigger is lost or doubled. A crash before the commit leaves the trigger due for any
      worker. A crash after it leaves a queued run, which recovery finds.
    - A run acts as its schedule (`schedule:sch_…`, role runner), not as the key that created the
      schedule; or as the person whose accounts the schedule uses, who must still have access. Its
      metadata names the schedule and the due time.
    - A trigger that was missed by a minute or more is handled by the schedule's `missed` policy.
    - A trigger that cannot start a run is stored as `last_error` with an audit entry, and the next
      trigger tries again. Examples: a disabled agent, a deleted or busy thread, a forbidden model.
    - An unavailable database leaves the trigger due.
    - Triggers wait neither for each other's runs nor for unreadable schedules.
    """

    def __init__(
        self,
        *,
        due: DueSchedules,
        schedules: ScheduleStore,
        start_run: StartRun,
        times: CronTimes,
        wakeups: Wakeups,
        user_access: UserAccess,
        clock: Clock,
    ) -> None:
        self._due = due
        self._schedules = schedules
        self._start_run = start_run
        self._times = times
        self._wakeups = wakeups
        self._user_access = user_access
        self._clock = clock
        self._stuck: frozenset[ScheduleId] = frozenset()

    async def execute(self) -> float:
        """Start what is due now. Returns the seconds until the next check."""
        at = self._clock.now()
        # Unreadable schedules stay due and come first: enlarge the batch by their number.
        limit = _BATCH + len(self._stuck)
        found = await self._due.due(at=at, limit=limit)
        slots = asyncio.Semaphore(_AT_ONCE)

        async def attempt(each: DueSchedule) -> bool:
            async with slots:
                return await self._attempt(each)

        async with asyncio.TaskGroup() as group:
            attempts = [group.create_task(attempt(each)) for each in found]
        done = sum(each.result() for each in attempts)
        left = zip(found, attempts, strict=True)
        stuck = frozenset(due.schedule_id for due, attempt in left if not attempt.result())
        is_news, self._stuck = not stuck <= self._stuck, stuck
        if len(found) == limit and (done or is_news):
            return 0.0  # there may be more, after a time in which no service ran
        waits = [REREAD_S]
        if done < len(found):
            waits.append(_RETRY_S)
        next_at = await self._due.next_due(after=at)
        if next_at is not None:
            waits.append(max((next_at - self._clock.now()).total_seconds(), 0.0))
        return min(waits)

    async def keep(self) -> None:
        """Start schedules as they become due, until cancelled."""
        async with self._wakeups.subscribe(SCHEDULES_TOPIC) as changed:
            await when_due(self.execute, task="schedules", retry_s=_RETRY_S, wait=changed.wait)

    async def _attempt(self, due: DueSchedule) -> bool:
        """Try one trigger; False to check it again: the database was unavailable, or the schedule
        was changed meanwhile."""
        try:
            return await self._fire(due)
        except Exception:
            logger.exception("schedule could not be triggered", extra={"schedule_id": due.schedule_id})
            return False

    async def _fire(self, due: DueSchedule) -> bool:
        schedule = await self._schedules.find(due.organization_id, due.schedule_id)
        now = self._clock.now()
        if schedule is None or schedule.next_fire_at is None or schedule.next_fire_at > now:
            return True  # another process was faster
        due_at, planned = schedule.next_fire_at, None
        try:
            planned = self._times.next_after(schedule.cron, schedule.timezone, now)
            firing = Firing(schedule_id=schedule.id, version=schedule.version, due_at=due_at, next_fire_at=planned)
            await self._require_person(schedule)
            if schedule.missed is MissedFires.SKIP and schedule.is_late(now):
                raise _missed(due_at)
            started = await self._start_run.execute(_command(schedule, firing))
        except ServiceError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            return error.code != "schedule_moved" and await self._pass_over(schedule, due_at, planned, error)
        except Exception:
            # Otherwise it would stay due forever, and a hundred such schedules would block all
            # others.
            logger.exception("schedule could not be triggered", extra={"schedule_id": schedule.id})
            return await self._pass_over(schedule, due_at, planned, _unexpected())
        logger.info("schedule fired", extra={"schedule_id": schedule.id, "run_id": started.run.id})
        return True

    async def _require_person(self, schedule: Schedule) -> None:
        """The person of the schedule still has access. Raises CONFLICT `person_refused`."""
        if schedule.person_id is None:
            return
        if await self._user_access.admitted(schedule.organization_id, schedule.person_id) is None:
            detail = "The person whose accounts the schedule uses has no access any more."
            raise ServiceError("person_refused", ErrorKind.CONFLICT, detail)

    async def _pass_over(
        self, schedule: Schedule, due_at: datetime, planned: datetime | None, error: ServiceError
    ) -> bool:
        at = self._clock.now()
        firing = Firing(schedule_id=schedule.id, version=schedule.version, due_at=due_at, next_fire_at=planned)
        reason = ScheduleError(code=error.code, detail=error.detail, at=at)
        moved_on = await self._due.pass_over(schedule, firing, reason, not_fired_audit(schedule, firing, reason))
        if moved_on:
            logger.warning("schedule not fired", extra={"schedule_id": schedule.id, "code": error.code})
        return moved_on


def _command(schedule: Schedule, firing: Firing) -> StartRunCommand:
    return StartRunCommand(
        # Saved by an admin, who may stop any run of the thread by the strategy.
        # Who set it up saw its agent and its thread.
        principal=Principal(
            organization_id=schedule.organization_id,
            key_id=schedule.requester,
            role=Role.OPERATOR,
            teams=None,
        ),
        agent=schedule.agent_id,
        input=schedule.input,
        thread_id=schedule.thread_id,
        strategy=schedule.strategy,
        lane=schedule.lane,
        limits=schedule.limits,
        model_settings=schedule.model_settings,
        output_schema=schedule.output_schema,
        model=schedule.model,
        tool_allowlist=schedule.tool_allowlist,
        metadata={
            **schedule.metadata,
            RUN_METADATA: {"id": schedule.id, "name": schedule.name, "due_at": firing.due_at.isoformat()},
        },
        webhook=schedule.webhook,
        firing=firing,
    )


def _missed(due_at: datetime) -> ServiceError:
    return ServiceError(
        "fire_missed",
        ErrorKind.CONFLICT,
        f"No process executed runs at {due_at.isoformat()}; the schedule skips missed runs.",
    )


def _unexpected() -> ServiceError:
    return ServiceError(
        "internal_error",
        ErrorKind.INTERNAL,
        "An internal error occurred; the log of the process that starts scheduled runs has the details.",
    )
