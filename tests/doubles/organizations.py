"""Organizations and their settings in memory."""

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import not_found, require_version
from domain.identity.api_key import ApiKey
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryOrganizationStore:
    """The `OrganizationStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def get(self, organization_id: OrganizationId) -> Organization | None:
        """The organization, or None."""
        return self._state.organizations.get(organization_id)

    async def first(self) -> Organization | None:
        """The one of the first start."""
        return min(self._state.organizations.values(), key=lambda one: (one.created_at, one.id), default=None)

    async def page(self, request: PageRequest) -> Page[Organization]:
        """All organizations, newest first."""
        return newest_first(self._state.organizations.values(), lambda one: by_time(one.created_at, one.id), request)

    async def add(self, organization: Organization, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store an organization with its first key."""
        self._state.organizations[organization.id] = organization
        self._state.keys[key.id] = key
        self._state.record(*audit)

    async def add_key(self, key: ApiKey, audit: tuple[AuditEvent, ...]) -> None:
        """Store a further key."""
        self._state.keys[key.id] = key
        self._state.record(*audit)

    async def save(self, changed: Organization, *, expected_version: int, audit: tuple[AuditEvent, ...]) -> None:
        """Store a change."""
        stored = await self.get(changed.id)
        if stored is None:
            raise not_found("organization", changed.id)
        require_version("organization", stored.version, expected=expected_version)
        self._state.organizations[changed.id] = changed
        self._state.record(*audit)
