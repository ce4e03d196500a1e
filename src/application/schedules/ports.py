"""Ports of the schedules slice: stored schedules, due schedules, and the times of cron expressions.

A trigger that starts a run is stored with the run by `RunStore.start` (`NewRun.firing`).
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
from domain.teams import Teams

SCHEDULES_TOPIC = "schedules"
"""Signalled when a schedule was added or changed, because it may be due first."""


class ScheduleStore(Protocol):
    """Schedules as people see and change them. Each write stores the audit event that
    describes it."""

    async def add(self, schedule: Schedule, audit: AuditEvent) -> None:
        """Store a new schedule. Raises CONFLICT `schedule_exists` if the name is in use in the
        organization, `too_many_schedules` beyond MAX_SCHEDULES."""

    async def save(self, changed: Schedule, *, expected_version: int, replanned: bool, audit: AuditEvent) -> None:
        """Store a change by people. `next_fire_at` is stored only if it was `replanned`, and
        results of triggers never, because triggers happen concurrently. Raises NOT_FOUND,
        PRECONDITION `version_conflict`, CONFLICT `schedule_exists`."""

    async def find(self, organization_id: OrganizationId, id_or_name: str, *, teams: Teams = None) -> Schedule | None:
        """The schedule with that id, otherwise with that name, or None; of agents that teams own,
        only of those of `teams`."""

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Schedule]:
        """Schedules, newest first; they belong to the teams of their agents."""

    async def delete(self, organization_id: OrganizationId, schedule_id: ScheduleId, audit: AuditEvent) -> bool:
        """Remove the schedule; its runs stay. False if it does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """The ids of a due schedule, without its content, which may be large."""

    organization_id: OrganizationId
    schedule_id: ScheduleId


class DueSchedules(Protocol):
    async def next_due(self, *, after: datetime) -> datetime | None:
        """When the next trigger after `after` is due; None if there is none."""

    async def due(self, *, at: datetime, limit: int) -> tuple[DueSchedule, ...]:
        """Schedules due at `at` or before, earliest first."""

    async def pass_over(self, schedule: Schedule, firing: Firing, error: ScheduleError, audit: AuditEvent) -> bool:
        """Move on without a run and store the reason as `last_error`. False, with nothing stored,
        if the schedule has already moved on."""


class CronTimes(Protocol):
    def faults(self, cron: str, timezone: str) -> tuple[Violation, ...]:
        """The violations in the fields `cron` and `timezone`; empty if both are valid."""

    def next_after(self, cron: str, timezone: str, after: datetime) -> datetime | None:
        """The first time after `after`, in UTC; None if there is none for decades. Raises INVALID
        `schedule_invalid` for invalid input.

        Changes to and from daylight saving time follow Debian's cron:
        - A fixed time runs once a day. A skipped time runs at the end of the gap; a repeated time
          runs the first time only.
        - An interval (minutes or hours begin with `*`) follows the clock: nothing runs in a gap,
          and repeated times run twice.
        """
