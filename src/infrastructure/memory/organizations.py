"""Organizations and their settings in memory."""

from domain.audit.event import AuditEvent
from domain.errors import ErrorKind, ServiceError, not_found
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from infrastructure.memory.state import InMemoryState


class InMemoryOrganizationStore:
    """The `OrganizationStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def get(self, organization_id: OrganizationId) -> Organization | None:
        """The organization, or None."""
        return self._state.organizations.get(organization_id)

    async def save(self, changed: Organization, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        stored = await self.get(changed.id)
        if stored is None:
            raise not_found("organization", changed.id)
        if stored.version != expected_version:
            raise ServiceError(
                "version_conflict",
                ErrorKind.PRECONDITION,
                f"Organization {changed.id} is at version {stored.version}, not {expected_version}.",
            )
        self._state.organizations[changed.id] = changed
        self._state.record(audit)
