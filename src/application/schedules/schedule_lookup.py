"""Finds a schedule by id or name."""

from application.schedules.ports import ScheduleStore
from domain.errors import existing
from domain.ids import OrganizationId
from domain.schedules.schedule import Schedule


async def existing_schedule(schedules: ScheduleStore, organization_id: OrganizationId, id_or_name: str) -> Schedule:
    """The schedule; an id takes precedence over a name. Raises NOT_FOUND `schedule_not_found`."""
    return existing(await schedules.find(organization_id, id_or_name), "schedule", id_or_name)
