"""GetOrganization: the caller's organization and its settings."""

from dataclasses import dataclass

from application.identity.ports import OrganizationStore
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOrganizationCommand:
    """Whose."""

    principal: Principal


class GetOrganization:
    """Any role may read; nobody reads another organization."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, command: GetOrganizationCommand) -> Organization:
        """The organization. Raises NOT_FOUND if it is gone."""
        command.principal.require(Role.VIEWER)
        organization = await self._organizations.get(command.principal.organization_id)
        if organization is None:
            raise not_found("organization", command.principal.organization_id)
        return organization
