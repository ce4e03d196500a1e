"""Reading organizations and API keys."""

from application.identity.key_uses import KeyUses
from application.identity.ports import IdentityStore, OrganizationStore
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.errors import existing
from domain.identity.api_key import ApiKey, Principal
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.ids import OrganizationId


class GetOrganization:
    """Any role may read its own organization; another one requires a platform key."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, principal: Principal, organization_id: OrganizationId | None = None) -> Organization:
        """`organization_id` None means the caller's own. Raises NOT_FOUND if the organization does
        not exist."""
        principal.require(Role.VIEWER)
        if organization_id is not None:
            principal.require_platform()
        wanted = organization_id or principal.organization_id
        return existing(await self._organizations.get(wanted), "organization", wanted)


class ListOrganizations:
    """Platform keys see all organizations and their settings, newest first, but none of their
    data."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Organization]:
        """Raises FORBIDDEN."""
        principal.require(Role.ADMIN)
        principal.require_platform()
        return await self._organizations.page(page)


class ListApiKeys:
    """Admins see all keys of their organization, also revoked and expired ones, newest first, each
    with its last known use."""

    def __init__(self, *, identities: IdentityStore, uses: KeyUses) -> None:
        self._identities = identities
        self._uses = uses

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[ApiKey]:
        """Raises FORBIDDEN."""
        principal.require(Role.ADMIN)
        await self._uses.store()
        return await self._identities.keys(principal.organization_id, page)
