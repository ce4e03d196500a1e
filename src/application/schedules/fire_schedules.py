"""Begins the runs of schedules when they are due."""

import asyncio
import logging
from datetime import datetime

from application.runs.start_run import StartRun, StartRunCommand
from application.schedules.ports import SCHEDULES_TOPIC, CronTimes, DueSchedule, DueSchedules, ScheduleStore
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
"""How often schedules are looked for even if nobody rang: another process may have added one, or the clock been set."""
_RETRY_S = 5.0
_BATCH = 100
_AT_ONCE = 8


class FireSchedules:
    """Rules: every process that executes runs looks, and each fire begins one run at most.

    The run, its first event, the audit entry and the schedule's move to its next time are one transaction, which is refused
    where the schedule has moved on or was changed since it was read. So a crash before the commit leaves the fire due, for
    any worker, and after it there is a queued run, which recovery finds even if nobody was rung for: no fire is lost, none
    doubled, and no key of a request has to be kept for it.

    A run acts as its schedule (`schedule:sch_…`, role runner), not as the key that made it, and says in its metadata which
    schedule began it and for when. A fire that was missed by a minute or more goes by the schedule's `missed`. What cannot
    begin a run, be it a disabled or deleted agent, a thread that is gone or busy, a model that may not be used any more, is
    kept as `last_error` with an audit entry, and the schedule goes on: the next fire tries again. A database that is away
    leaves the fire due. Fires do not wait for each other's runs, nor for schedules that cannot be read.
    """

    def __init__(
        self,
        *,
        due: DueSchedules,
        schedules: ScheduleStore,
        start_run: StartRun,
        times: CronTimes,
        wakeups: Wakeups,
        clock: Clock,
    ) -> None:
        self._due = due
        self._schedules = schedules
        self._start_run = start_run
        self._times = times
        self._wakeups = wakeups
        self._clock = clock
        self._stuck: frozenset[ScheduleId] = frozenset()

    async def execute(self) -> float:
        """Fire what is due now; returns after how many seconds to look again."""
        at = self._clock.now()
        # Those that could not even be read stay due, before all others: there is a batch beside them.
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
        """Fire schedules as they become due, until cancelled."""
        async with self._wakeups.subscribe(SCHEDULES_TOPIC) as changed:
            while True:
                try:
                    wait_s = await self.execute()
                except Exception:
                    logger.exception("schedules could not be read")
                    wait_s = _RETRY_S
                await changed.wait(wait_s)

    async def _attempt(self, due: DueSchedule) -> bool:
        """False for a fire that is to be looked at again: the database was away, or the schedule was changed meanwhile."""
        try:
            return await self._fire(due)
        except Exception:
            logger.exception("a schedule could not be fired", extra={"schedule_id": due.schedule_id})
            return False

    async def _fire(self, due: DueSchedule) -> bool:
        schedule = await self._schedules.find(due.organization_id, due.schedule_id)
        now = self._clock.now()
        if schedule is None or schedule.next_fire_at is None or schedule.next_fire_at > now:
            return True  # somebody was faster
        due_at, planned = schedule.next_fire_at, None
        try:
            planned = self._times.next_after(schedule.cron, schedule.timezone, now)
            firing = Firing(schedule_id=schedule.id, version=schedule.version, due_at=due_at, next_fire_at=planned)
            if schedule.missed is MissedFires.SKIP and schedule.is_late(now):
                raise _missed(due_at)
            started = await self._start_run.execute(_command(schedule, firing))
        except ServiceError as error:
            if error.kind is ErrorKind.UNAVAILABLE:
                raise
            return error.code != "schedule_moved" and await self._pass_over(schedule, due_at, planned, error)
        except Exception:
            # Else it would be due for ever, and a hundred of its kind would keep all others from being looked at.
            logger.exception("a schedule could not be fired", extra={"schedule_id": schedule.id})
            return await self._pass_over(schedule, due_at, planned, _unexpected())
        logger.info("schedule fired", extra={"schedule_id": schedule.id, "run_id": started.run.id})
        return True

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
        principal=Principal(organization_id=schedule.organization_id, key_id=schedule.actor, role=Role.RUNNER),
        agent=schedule.agent_id,
        input=schedule.input,
        thread_id=schedule.thread_id,
        strategy=schedule.strategy,
        limits=schedule.limits,
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
        f"Nothing executed runs at {due_at.isoformat()}; the schedule says to skip what was missed.",
    )


def _unexpected() -> ServiceError:
    return ServiceError(
        "internal_error",
        ErrorKind.INTERNAL,
        "Something went wrong on our side; the log of the process that fires schedules has the details.",
    )
