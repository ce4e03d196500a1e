"""ListAuditEvents: read an organization's audit trail."""

from dataclasses import dataclass

from application.audit.ports import AuditFilter, AuditLog
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAuditEventsCommand:
    principal: Principal
    wanted: AuditFilter = AuditFilter()
    page: PageRequest = PageRequest()


class ListAuditEvents:
    """Rules:
    - Any role may read.
    - Matching entries of the caller's organization, newest first.

    Raises: ServiceError for an invalid cursor.
    """

    def __init__(self, *, audit_log: AuditLog) -> None:
        self._audit_log = audit_log

    async def execute(self, command: ListAuditEventsCommand) -> Page[AuditEvent]:
        command.principal.require(Role.VIEWER)
        return await self._audit_log.page(command.principal.organization_id, command.wanted, command.page)
