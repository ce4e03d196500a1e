"""Schedules in SQL, for users and for triggers."""

from datetime import datetime

from sqlalchemy import ColumnElement, Connection, bindparam, delete, func, select, update

from application.schedules.ports import SCHEDULES_TOPIC, DueSchedule
from application.system.pages import Page, PageRequest
from application.system.wakeups import Wakeups
from domain.audit.event import AuditEvent
from domain.errors import ServiceError, conflict, existing, require_version
from domain.ids import OrganizationId, ScheduleId
from domain.schedules.firing import Firing
from domain.schedules.schedule import MAX_SCHEDULES, Schedule, ScheduleError
from domain.teams import Teams
from infrastructure.persistence.audit.rows import record, recorded_change
from infrastructure.persistence.columns.paging import AnyRow, newest_page
from infrastructure.persistence.columns.teams import seen_by
from infrastructure.persistence.engine.database import SYSTEM, Database, duplicates_as
from infrastructure.persistence.schedules.rows import changeable_row, move, schedule_of, schedule_row
from infrastructure.persistence.secrets.box import SecretBox
from infrastructure.persistence.tables import organization, schedule
from infrastructure.persistence.tables.owners import team_of_agent, team_of_thread

_of_organization = schedule.c.organization_id == bindparam("of_organization")
_this = schedule.c.id == bindparam("this")
_by_id = select(schedule).where(_of_organization, _this)
_by_name = select(schedule).where(_of_organization, schedule.c.name == bindparam("named"))
_count = select(func.count()).select_from(schedule).where(_of_organization)
# Parallel additions are counted one after the other.
_lock_organization = (
    select(organization.c.id).where(organization.c.id == bindparam("of_organization")).with_for_update(key_share=True)
)
_lock = select(schedule.c.version).where(_of_organization, _this).with_for_update()
_insert = schedule.insert()
_change = update(schedule).where(_of_organization, _this)
_delete = delete(schedule).where(_of_organization, _this)
_next_due = select(func.min(schedule.c.next_fire_at)).where(schedule.c.next_fire_at > bindparam("moment"))
_due = (
    select(schedule.c.organization_id, schedule.c.id)
    .where(schedule.c.next_fire_at <= bindparam("moment"))
    .order_by(schedule.c.next_fire_at, schedule.c.id)
    .limit(bindparam("limit"))
)


class SqlScheduleStore:
    """The ports `ScheduleStore` and `DueSchedules`."""

    def __init__(self, *, database: Database, wakeups: Wakeups, box: SecretBox) -> None:
        self._database = database
        self._box = box
        self._wakeups = wakeups

    async def add(self, new: Schedule, audit: AuditEvent) -> None:
        row = schedule_row(new, self._box)
        wanted = {"of_organization": new.organization_id}

        def unit(connection: Connection) -> None:
            connection.execute(_lock_organization, wanted)
            if connection.execute(_count, wanted).scalar_one() >= MAX_SCHEDULES:
                raise too_many_schedules()
            connection.execute(_insert, row)
            record(connection, audit)

        with duplicates_as(name_taken(new.name)):
            await self._database.write(unit, scope=new.organization_id, after_commit=self._wake)

    async def save(self, changed: Schedule, *, expected_version: int, replanned: bool, audit: AuditEvent) -> None:
        wanted = {"of_organization": changed.organization_id, "this": changed.id}
        values = changeable_row(changed, self._box)
        if replanned:
            values["next_fire_at"] = changed.next_fire_at

        def unit(connection: Connection) -> None:
            stored = existing(connection.execute(_lock, wanted).scalar_one_or_none(), "schedule", changed.id)
            require_version("schedule", stored, expected=expected_version)
            connection.execute(_change.values(values), wanted)
            record(connection, audit)

        with duplicates_as(name_taken(changed.name)):
            await self._database.write(unit, scope=changed.organization_id, after_commit=self._wake)

    async def find(self, organization_id: OrganizationId, id_or_name: str, *, teams: Teams = None) -> Schedule | None:
        seen = _seen_by(teams)

        def unit(connection: Connection) -> Schedule | None:
            wanted = {"of_organization": organization_id}
            row = connection.execute(_by_id.where(*seen), wanted | {"this": id_or_name}).first()
            if row is None:
                row = connection.execute(_by_name.where(*seen), wanted | {"named": id_or_name}).first()
            return None if row is None else self._of(row)

        return await self._database.read(unit, scope=organization_id)

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[Schedule]:
        statement = select(schedule).where(schedule.c.organization_id == organization_id)
        seen = statement.where(*_seen_by(request.teams))
        return await self._database.read(newest_page(seen, request, schedule.c, self._of), scope=organization_id)

    async def delete(self, organization_id: OrganizationId, schedule_id: ScheduleId, audit: AuditEvent) -> bool:
        return await self._database.write(
            recorded_change(_delete, {"of_organization": organization_id, "this": schedule_id}, audit),
            scope=organization_id,
        )

    async def next_due(self, *, after: datetime) -> datetime | None:

        def unit(connection: Connection) -> datetime | None:
            moment: datetime | None = connection.execute(_next_due, {"moment": after}).scalar_one()
            return moment

        return await self._database.read(unit, scope=SYSTEM)

    async def due(self, *, at: datetime, limit: int) -> tuple[DueSchedule, ...]:
        wanted = {"moment": at, "limit": limit}
        rows = await self._database.read(lambda connection: connection.execute(_due, wanted).all(), scope=SYSTEM)
        return tuple(
            DueSchedule(organization_id=OrganizationId(row.organization_id), schedule_id=ScheduleId(row.id))
            for row in rows
        )

    async def pass_over(self, passed: Schedule, firing: Firing, error: ScheduleError, audit: AuditEvent) -> bool:
        told: dict[str, object] = {"error_code": error.code, "error_detail": error.detail, "error_at": error.at}

        def unit(connection: Connection) -> bool:
            if not move(connection, passed.organization_id, firing, told):
                return False
            record(connection, audit)
            return True

        return await self._database.write(unit, scope=passed.organization_id)

    def _of(self, row: AnyRow) -> Schedule:
        return schedule_of(row, self._box)

    def _wake(self, _: None) -> None:
        self._wakeups.wake(SCHEDULES_TOPIC)


def _seen_by(teams: Teams) -> tuple[ColumnElement[bool], ...]:
    """The conditions that the schedule's agent and its thread are seen."""
    owners = (team_of_agent(schedule.c.agent_id), team_of_thread(schedule.c.thread_id))
    return tuple(condition for owner in owners for condition in seen_by(teams, owner))


def name_taken(name: str) -> ServiceError:
    return conflict("schedule_exists", f"There is a schedule {name!r} already.")


def too_many_schedules() -> ServiceError:
    return conflict("too_many_schedules", f"An organization has at most {MAX_SCHEDULES} schedules.")
