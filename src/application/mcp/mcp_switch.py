"""The switches for MCP: of the installation and of the organization, and the kinds of servers that
an organization may have."""

from dataclasses import dataclass

from application.identity.ports import OrganizationStore
from domain.ids import OrganizationId
from domain.mcp.kinds import is_permitted, kind_refused
from domain.mcp.server import McpServerConfig


@dataclass(frozen=True, slots=True)
class McpKinds:
    """The kinds of servers that an organization may have. None permits all."""

    kinds: tuple[str, ...] | None

    def permit(self, config: McpServerConfig) -> bool:
        return is_permitted(self.kinds, config)


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

    async def permitted(self, organization_id: OrganizationId) -> McpKinds | None:
        """The kinds of servers that the organization may use; None while MCP is off."""
        if not self._enabled:
            return None
        organization = await self._organizations.get(organization_id)
        return McpKinds(organization.mcp_kinds) if organization is not None and organization.mcp_enabled else None

    async def permits_kind(self, organization_id: OrganizationId, config: McpServerConfig) -> bool:
        """Whether the organization may register and start this kind of server. Nothing is permitted
        to an unknown organization."""
        organization = await self._organizations.get(organization_id)
        return organization is not None and is_permitted(organization.mcp_kinds, config)

    async def require_kind(self, organization_id: OrganizationId, config: McpServerConfig) -> None:
        """Raises FORBIDDEN `mcp_kind_not_permitted`."""
        if not await self.permits_kind(organization_id, config):
            raise kind_refused(config)
