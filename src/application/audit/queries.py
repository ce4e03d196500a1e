"""Reading the audit trail."""

from dataclasses import replace

from application.audit.ports import AuditFilter, AuditLog
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import Principal
from domain.identity.role import Role

_EVERYTHING = AuditFilter()


class ListAuditEvents:
    """Rules:
    - Any role may read; entries about what belongs to a team that the caller does not see are left
      out.
    - Matching entries of the caller's organization, newest first.

    Raises: ServiceError for an invalid cursor.
    """

    def __init__(self, *, audit_log: AuditLog) -> None:
        self._audit_log = audit_log

    async def execute(
        self, principal: Principal, wanted: AuditFilter = _EVERYTHING, page: PageRequest = FIRST_PAGE
    ) -> Page[AuditEvent]:
        principal.require(Role.VIEWER)
        seen = replace(wanted, teams=principal.visible_teams)
        return await self._audit_log.page(principal.organization_id, seen, page)
