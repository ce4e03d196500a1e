"""ListSchedules: an organization's schedules."""

from dataclasses import dataclass

from application.schedules.ports import ScheduleStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.schedules.schedule import Schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSchedulesCommand:
    principal: Principal
    page: PageRequest = PageRequest()


class ListSchedules:
    """Any role may read; newest first."""

    def __init__(self, *, schedules: ScheduleStore) -> None:
        self._schedules = schedules

    async def execute(self, command: ListSchedulesCommand) -> Page[Schedule]:
        command.principal.require(Role.VIEWER)
        return await self._schedules.page(command.principal.organization_id, command.page)
