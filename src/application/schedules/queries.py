"""Reading schedules."""

from application.schedules.ports import ScheduleStore
from application.schedules.schedule_lookup import existing_schedule
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.schedules.schedule import Schedule


class GetSchedule:
    """Any role may read. A schedule of another organization is not found."""

    def __init__(self, *, schedules: ScheduleStore) -> None:
        self._schedules = schedules

    async def execute(self, principal: Principal, schedule: str) -> Schedule:
        """Raises NOT_FOUND. `schedule` is an id or a name."""
        principal.require(Role.VIEWER)
        return await existing_schedule(self._schedules, principal, schedule)


class ListSchedules:
    """Any role may read; newest first."""

    def __init__(self, *, schedules: ScheduleStore) -> None:
        self._schedules = schedules

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Schedule]:
        principal.require(Role.VIEWER)
        return await self._schedules.page(principal.organization_id, page.seen_by(principal))
