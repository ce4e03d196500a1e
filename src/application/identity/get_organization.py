"""GetOrganization: read an organization and its settings."""

from dataclasses import dataclass

from application.identity.ports import OrganizationStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.ids import OrganizationId


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOrganizationCommand:
    """`organization_id` None means the caller's own."""

    principal: Principal
    organization_id: OrganizationId | None = None


class GetOrganization:
    """Any role may read its own organization; another one requires a platform key."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, command: GetOrganizationCommand) -> Organization:
        """Raises NOT_FOUND if the organization does not exist."""
        command.principal.require(Role.VIEWER)
        if command.organization_id is not None:
            command.principal.require_platform()
        wanted = command.organization_id or command.principal.organization_id
        organization = await self._organizations.get(wanted)
        if organization is None:
            raise not_found("organization", wanted)
        return organization
