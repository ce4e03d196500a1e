"""Schedules in memory, as people change them and as the clock sees them."""

from dataclasses import replace
from datetime import datetime

from application.schedules.ports import SCHEDULES_TOPIC, DueSchedule
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found, require_version
from domain.ids import OrganizationId, ScheduleId
from domain.runs.run import Run
from domain.schedules.firing import Firing, fired_audit
from domain.schedules.schedule import MAX_SCHEDULES, Schedule, ScheduleError
from domain.teams import Teams
from tests.doubles.owners import seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryScheduleStore:
    """The ports `ScheduleStore` and `DueSchedules` over shared in-memory tables."""

    def __init__(self, state: InMemoryState, wakeups: Wakeups) -> None:
        self._state = state
        self._wakeups = wakeups

    async def add(self, new: Schedule, audit: AuditEvent) -> None:
        """Store a new schedule."""
        self._refuse_taken_name(new)
        if len(self._of(new.organization_id)) >= MAX_SCHEDULES:
            raise conflict("too_many_schedules", f"An organization has at most {MAX_SCHEDULES} schedules.")
        self._store(new, audit)

    async def save(self, changed: Schedule, *, expected_version: int, replanned: bool, audit: AuditEvent) -> None:
        """Store what people change."""
        stored = self._state.schedules.get(changed.id)
        if stored is None or stored.organization_id != changed.organization_id:
            raise not_found("schedule", changed.id)
        require_version("schedule", stored.version, expected=expected_version)
        self._refuse_taken_name(changed)
        beside = replace(
            changed,
            next_fire_at=changed.next_fire_at if replanned else stored.next_fire_at,
            last_fired_at=stored.last_fired_at,
            last_run_id=stored.last_run_id,
            last_error=stored.last_error,
        )
        self._store(beside, audit)

    async def find(self, organization_id: OrganizationId, id_or_name: str, *, teams: Teams = None) -> Schedule | None:
        """The schedule of that id, else of that name."""
        found = seen(self._state, teams, self._of(organization_id), lambda each: each.id)
        by_id = [each for each in found if each.id == id_or_name]
        return next(iter([*by_id, *(each for each in found if each.name == id_or_name)]), None)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Schedule]:
        """Schedules, newest first."""
        return newest_first(
            seen(self._state, request.teams, self._of(organization_id), lambda each: each.id),
            lambda each: by_time(each.created_at, each.id),
            request,
        )

    async def delete(self, organization_id: OrganizationId, schedule_id: ScheduleId, audit: AuditEvent) -> bool:
        """Remove the schedule."""
        stored = self._state.schedules.get(schedule_id)
        if stored is None or stored.organization_id != organization_id:
            return False
        del self._state.schedules[schedule_id]
        self._state.record(audit)
        return True

    async def next_due(self, *, after: datetime) -> datetime | None:
        """When the next fire after that moment is due."""
        return min((at for at, _ in self._planned() if at > after), default=None)

    async def due(self, *, at: datetime, limit: int) -> tuple[DueSchedule, ...]:
        """Schedules due at `at` or before, the earliest first."""
        found = sorted((planned, each.id, each) for planned, each in self._planned() if planned <= at)
        return tuple(
            DueSchedule(organization_id=each.organization_id, schedule_id=each.id) for _, _, each in found[:limit]
        )

    async def pass_over(self, passed: Schedule, firing: Firing, error: ScheduleError, audit: AuditEvent) -> bool:
        """Move on without a run."""
        stored = where_seen(self._state, passed.organization_id, firing)
        if stored is None:
            return False
        self._state.schedules[stored.id] = replace(stored, next_fire_at=firing.next_fire_at, last_error=error)
        self._state.record(audit)
        return True

    def _of(self, organization_id: OrganizationId) -> list[Schedule]:
        """What is left of the last run of each is a run that is there still."""
        return [
            each if each.last_run_id in self._state.runs else replace(each, last_run_id=None)
            for each in self._state.schedules.values()
            if each.organization_id == organization_id
        ]

    def _planned(self) -> list[tuple[datetime, Schedule]]:
        return [(each.next_fire_at, each) for each in self._state.schedules.values() if each.next_fire_at is not None]

    def _refuse_taken_name(self, wanted: Schedule) -> None:
        if any(each.name == wanted.name and each.id != wanted.id for each in self._of(wanted.organization_id)):
            raise conflict("schedule_exists", f"There is a schedule {wanted.name!r} already.")

    def _store(self, schedule: Schedule, audit: AuditEvent) -> None:
        self._state.schedules[schedule.id] = schedule
        self._state.record(audit)
        self._wakeups.wake(SCHEDULES_TOPIC)


def where_seen(state: InMemoryState, organization_id: OrganizationId, firing: Firing) -> Schedule | None:
    """The schedule, if it is where the firing saw it."""
    stored = state.schedules.get(firing.schedule_id)
    if stored is None or stored.organization_id != organization_id:
        return None
    return stored if (stored.version, stored.next_fire_at) == (firing.version, firing.due_at) else None


def begin_run(state: InMemoryState, moved: Schedule, firing: Firing, begun: Run) -> None:
    """Move the schedule on because of this run."""
    state.schedules[moved.id] = replace(
        moved,
        next_fire_at=firing.next_fire_at,
        last_fired_at=begun.created_at,
        last_run_id=begun.id,
        last_error=None,
    )
    state.record(fired_audit(begun, firing))
