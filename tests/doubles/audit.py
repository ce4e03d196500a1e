"""The audit trail in memory."""

from application.audit.ports import AuditFilter
from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.ids import OrganizationId
from tests.doubles.owners import is_seen_entry
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryAuditLog:
    """The `AuditLog` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def page(
        self, organization_id: OrganizationId, wanted: AuditFilter, request: PageRequest
    ) -> Page[AuditEvent]:
        """Matching entries, newest first."""
        entries = (
            entry
            for entry in self._state.audit.values()
            if entry.organization_id == organization_id and matches(entry, wanted)
            if is_seen_entry(self._state, wanted.teams, entry)
        )
        return newest_first(entries, lambda entry: by_time(entry.at, entry.id), request)

    async def record(self, audit: AuditEvent) -> None:
        """Store an entry that describes no stored change."""
        self._state.record(audit)


def matches(entry: AuditEvent, wanted: AuditFilter) -> bool:
    """Whether all conditions hold."""
    return (
        (wanted.action is None or _action_matches(entry.action.value, wanted.action))
        and (wanted.decisions is None or entry.action in wanted.decisions)
        and wanted.actor in (None, entry.actor)
        and wanted.resource in (None, entry.resource)
        and wanted.run_id in (None, entry.run_id)
        and wanted.tool in (None, entry.tool)
        and wanted.server_id in (None, entry.server_id)
        and (wanted.since is None or entry.at >= wanted.since)
        and (wanted.until is None or entry.at < wanted.until)
    )


def _action_matches(action: str, pattern: str) -> bool:
    return action.startswith(pattern[:-1]) if pattern.endswith(".*") else action == pattern
