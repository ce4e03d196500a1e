"""Reading what agents have used."""

from dataclasses import dataclass, replace
from datetime import date

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.usage.ports import ToolUsageFilter, ToolUsageReports, UsageFilter, UsageReports
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.usage.daily_usage import UsageKey, UsageSum
from domain.usage.tool_usage import ToolUsageSum

_EVERYTHING = UsageFilter()
_KEYS_OF_TOOLS = frozenset({UsageKey.DAY, UsageKey.TOOL})


class GetUsage:
    """Rules:
    - Any role may read its organization's usage.
    - Deleted agents are included, agents of teams that the caller does not see are not.

    Raises: ServiceError usage_days_invalid, and for an invalid cursor.
    """

    def __init__(self, *, reports: UsageReports) -> None:
        self._reports = reports

    async def execute(
        self, principal: Principal, wanted: UsageFilter = _EVERYTHING, page: PageRequest = FIRST_PAGE
    ) -> Page[UsageSum]:
        principal.require(Role.VIEWER)
        _check_days(wanted)
        seen = replace(wanted, teams=principal.visible_teams)
        return await self._reports.page(principal.organization_id, seen, page)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """A page of sums, and the first day on which calls were counted."""

    page: Page[ToolUsageSum]
    first_day: date | None


class GetToolUsage:
    """Rules:
    - Any role may read its organization's usage.
    - Sums of calls are by day or tool alone. Tools of servers that the caller does not see are left
      out.

    Raises: ServiceError usage_days_invalid, usage_keys_invalid, and for an invalid cursor.
    """

    def __init__(self, *, tool_usage: ToolUsageReports) -> None:
        self._reports = tool_usage

    async def execute(self, principal: Principal, wanted: ToolUsageFilter, page: PageRequest = FIRST_PAGE) -> ToolUsage:
        principal.require(Role.VIEWER)
        _check_days(wanted)
        if others := sorted(wanted.by - _KEYS_OF_TOOLS):
            wrong = Violation(path="by", message=f"must not be {others[0].value} together with tool")
            raise invalid("usage_keys_invalid", "Calls of tools are summed by day and tool.", wrong)
        organization_id = principal.organization_id
        seen = replace(wanted, teams=principal.visible_teams)
        found = await self._reports.page(organization_id, seen, page)
        return ToolUsage(page=found, first_day=await self._reports.first_day(organization_id))


def _check_days(wanted: UsageFilter | ToolUsageFilter) -> None:
    since, until = wanted.since, wanted.until
    if since is not None and until is not None and since > until:
        wrong = Violation(path="since", message="must not be after until")
        raise invalid("usage_days_invalid", "The first day is after the last one.", wrong)
