"""The switches for MCP: of the installation and of the organization."""

from application.identity.ports import OrganizationStore
from domain.ids import OrganizationId


class McpSwitch:
    """Checked before every call and listing, so that disabling applies at once. Both switches must
    be on."""

    def __init__(self, *, enabled: bool, organizations: OrganizationStore) -> None:
        self._enabled = enabled
        self._organizations = organizations

    async def is_on(self, organization_id: OrganizationId) -> bool:
        """False for an unknown organization, too."""
        if not self._enabled:
            return False
        organization = await self._organizations.get(organization_id)
        return organization is not None and organization.mcp_enabled
