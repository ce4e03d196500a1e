"""Reading what agents have used."""

from application.system.pages import FIRST_PAGE, Page, PageRequest
from application.usage.ports import UsageFilter, UsageReports
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.usage.daily_usage import UsageSum

_EVERYTHING = UsageFilter()


class GetUsage:
    """Rules:
    - Any role may read its organization's usage.
    - Deleted agents are included.

    Raises: ServiceError usage_days_invalid, and for an invalid cursor.
    """

    def __init__(self, *, reports: UsageReports) -> None:
        self._reports = reports

    async def execute(
        self, principal: Principal, wanted: UsageFilter = _EVERYTHING, page: PageRequest = FIRST_PAGE
    ) -> Page[UsageSum]:
        principal.require(Role.VIEWER)
        since, until = wanted.since, wanted.until
        if since is not None and until is not None and since > until:
            wrong = Violation(path="since", message="must not be after until")
            raise invalid("usage_days_invalid", "The first day is after the last one.", wrong)
        return await self._reports.page(principal.organization_id, wanted, page)
