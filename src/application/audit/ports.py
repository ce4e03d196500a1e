"""Ports of the audit slice."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Conditions that all must hold; None does not restrict. `action` may end in `.*` (`tool.*`).
    `since` is inclusive, `until` exclusive."""

    action: str | None = None
    actor: str | None = None
    resource: str | None = None
    run_id: str | None = None
    tool: str | None = None
    since: datetime | None = None
    until: datetime | None = None


class AuditLog(Protocol):
    """Reading the audit trail; entries are written by the stores, with the changes they describe."""

    async def page(
        self, organization_id: OrganizationId, wanted: AuditFilter, request: PageRequest
    ) -> Page[AuditEvent]:
        """Matching entries, newest first."""
        ...

    async def record(self, audit: AuditEvent) -> None:
        """Store an entry that describes no stored change (a test of a server)."""
        ...
