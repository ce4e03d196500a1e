"""Finds a schedule by id or name."""

from application.schedules.ports import ScheduleStore
from domain.errors import not_found
from domain.ids import OrganizationId
from domain.schedules.schedule import Schedule


async def existing_schedule(schedules: ScheduleStore, organization_id: OrganizationId, id_or_name: str) -> Schedule:
    """The schedule; an id takes precedence over a name. Raises NOT_FOUND `schedule_not_found`."""
    schedule = await schedules.find(organization_id, id_or_name)
    if schedule is None:
        raise not_found("schedule", id_or_name)
    return schedule
