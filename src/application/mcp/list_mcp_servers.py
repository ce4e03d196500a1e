"""ListMcpServers: an organization's servers."""

from dataclasses import dataclass

from application.mcp.ports import McpServerStore
from application.system.pages import Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMcpServersCommand:
    """Which page."""

    principal: Principal
    page: PageRequest = PageRequest()


class ListMcpServers:
    """Any role may read; newest first."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, command: ListMcpServersCommand) -> Page[McpServer]:
        """One page."""
        command.principal.require(Role.VIEWER)
        return await self._servers.page(command.principal.organization_id, command.page)
