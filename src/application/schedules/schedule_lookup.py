"""Finding a schedule by what a client calls it: its id or its name."""

from application.schedules.ports import ScheduleStore
from domain.errors import not_found
from domain.ids import OrganizationId
from domain.schedules.schedule import Schedule


async def existing_schedule(schedules: ScheduleStore, organization_id: OrganizationId, id_or_name: str) -> Schedule:
    """An id goes before a name. Raises NOT_FOUND `schedule_not_found`."""
    schedule = await schedules.find(organization_id, id_or_name)
    if schedule is None:
        raise not_found("schedule", id_or_name)
    return schedule
