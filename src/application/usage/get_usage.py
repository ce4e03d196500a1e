"""GetUsage: read the model usage of an organization's agents."""

from dataclasses import dataclass

from application.system.pages import Page, PageRequest
from application.usage.ports import UsageFilter, UsageReports
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.usage.daily_usage import UsageSum


@dataclass(frozen=True, slots=True, kw_only=True)
class GetUsageCommand:
    """The filter, the grouping and the page."""

    principal: Principal
    wanted: UsageFilter = UsageFilter()
    page: PageRequest = PageRequest()


class GetUsage:
    """Rules:
    - Any role may read its organization's usage.
    - Deleted agents are included.

    Raises: ServiceError usage_days_invalid, and for an invalid cursor.
    """

    def __init__(self, *, reports: UsageReports) -> None:
        self._reports = reports

    async def execute(self, command: GetUsageCommand) -> Page[UsageSum]:
        command.principal.require(Role.VIEWER)
        since, until = command.wanted.since, command.wanted.until
        if since is not None and until is not None and since > until:
            wrong = Violation(path="since", message="must not be after until")
            raise invalid("usage_days_invalid", "The first day is after the last one.", wrong)
        return await self._reports.page(command.principal.organization_id, command.wanted, command.page)
