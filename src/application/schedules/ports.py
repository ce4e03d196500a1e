"""Ports of the schedules slice: stored schedules, those that are due, and the times of cron expressions.

A fire that begins a run is stored with it, by `RunStore.start` (`NewRun.firing`).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import Violation
from domain.ids import OrganizationId, ScheduleId
from domain.schedules.firing import Firing
from domain.schedules.schedule import Schedule, ScheduleError

SCHEDULES_TOPIC = "schedules"
"""Woken when a schedule was added or changed, since it may be due before all others now."""


class ScheduleStore(Protocol):
    """Schedules as people see and change them; each write carries the audit event that describes it."""

    async def add(self, schedule: Schedule, audit: AuditEvent) -> None:
        """Store a new schedule. Raises CONFLICT `schedule_exists` if the name is in use in the organization,
        `too_many_schedules` beyond MAX_SCHEDULES."""
        ...

    async def save(self, changed: Schedule, *, expected_version: int, replanned: bool, audit: AuditEvent) -> None:
        """Store what people change. `next_fire_at` only if it was `replanned`, and what is known of former fires never:
        fires happen beside. Raises NOT_FOUND, PRECONDITION `version_conflict`, CONFLICT `schedule_exists`."""
        ...

    async def find(self, organization_id: OrganizationId, id_or_name: str) -> Schedule | None:
        """The schedule of that id, else of that name, or None."""
        ...

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Schedule]:
        """Schedules, newest first."""
        ...

    async def delete(self, organization_id: OrganizationId, schedule_id: ScheduleId, audit: AuditEvent) -> bool:
        """Remove the schedule; runs it began stay. False if there is none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """Which schedule is due, without what it says: that may be large."""

    organization_id: OrganizationId
    schedule_id: ScheduleId


class DueSchedules(Protocol):
    """Schedules of all organizations, as the clock sees them."""

    async def next_due(self, *, after: datetime) -> datetime | None:
        """When the next fire after that moment is due; None without any."""
        ...

    async def due(self, *, at: datetime, limit: int) -> tuple[DueSchedule, ...]:
        """Schedules due at `at` or before, the earliest first."""
        ...

    async def pass_over(self, schedule: Schedule, firing: Firing, error: ScheduleError, audit: AuditEvent) -> bool:
        """Move on without a run, keeping the reason as `last_error`. False, with nothing stored, if the schedule has moved
        on already."""
        ...


class CronTimes(Protocol):
    """When cron expressions fire."""

    def faults(self, cron: str, timezone: str) -> tuple[Violation, ...]:
        """What is wrong with either, by the names `cron` and `timezone`; empty if both can be used."""
        ...

    def next_after(self, cron: str, timezone: str, after: datetime) -> datetime | None:
        """The first time after that moment, in UTC; None if there is none for decades. Raises INVALID `schedule_invalid`
        where there are faults.

        What fires at fixed times does so once a day also where clocks are changed: at the end of what is left out if its time
        is in there, and the first time round of what is repeated. What fires every so many minutes or hours (its minutes
        or hours begin with `*`) fires whenever the clock shows such a time: not in what is left out, and both times in what is
        repeated. That is how Debian's cron does it.
        """
        ...
