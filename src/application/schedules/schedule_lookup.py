"""Finds a schedule by id or name."""

from application.schedules.ports import ScheduleStore
from domain.errors import existing
from domain.identity.api_key import Principal
from domain.schedules.schedule import Schedule


async def existing_schedule(schedules: ScheduleStore, principal: Principal, id_or_name: str) -> Schedule:
    """The schedule; an id takes precedence over a name. Raises NOT_FOUND `schedule_not_found`, also
    for one whose agent or thread belongs to a team that the caller does not see."""
    found = await schedules.find(principal.organization_id, id_or_name, teams=principal.visible_teams)
    return existing(found, "schedule", id_or_name)
