"""GetSchedule: read one schedule."""

from dataclasses import dataclass

from application.schedules.ports import ScheduleStore
from application.schedules.schedule_lookup import existing_schedule
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class GetScheduleCommand:
    """`schedule` is an id or a name."""

    principal: Principal
    schedule: str


class GetSchedule:
    """Any role may read. A schedule of another organization is not found."""

    def __init__(self, *, schedules: ScheduleStore) -> None:
        self._schedules = schedules

    async def execute(self, command: GetScheduleCommand) -> Schedule:
        """Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        return await existing_schedule(self._schedules, command.principal.organization_id, command.schedule)
