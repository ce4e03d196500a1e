"""Whether MCP may be used at all: switched on for this installation, and by the organization."""

from application.identity.ports import OrganizationStore
from domain.ids import OrganizationId


class McpSwitch:
    """Asked before every call and listing, so that switching off holds at once. Both switches have to be on."""

    def __init__(self, *, enabled: bool, organizations: OrganizationStore) -> None:
        self._enabled = enabled
        self._organizations = organizations

    async def is_on(self, organization_id: OrganizationId) -> bool:
        """False for an organization that is not there, too."""
        if not self._enabled:
            return False
        organization = await self._organizations.get(organization_id)
        return organization is not None and organization.mcp_enabled
