"""ListOrganizations: list the tenants of this installation."""

from dataclasses import dataclass

from application.identity.ports import OrganizationStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrganizationsCommand:
    principal: Principal
    page: PageRequest = PageRequest()


class ListOrganizations:
    """Platform keys see all organizations and their settings, newest first, but none of their
    data."""

    def __init__(self, *, organizations: OrganizationStore) -> None:
        self._organizations = organizations

    async def execute(self, command: ListOrganizationsCommand) -> Page[Organization]:
        """Raises FORBIDDEN."""
        command.principal.require(Role.ADMIN)
        command.principal.require_platform()
        return await self._organizations.page(command.page)
