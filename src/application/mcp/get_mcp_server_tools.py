"""GetMcpServerTools: what a server offers, as last seen."""

from dataclasses import dataclass

from application.mcp.ports import McpCatalogStore, McpServerStore
from application.mcp.server_lookup import existing_server
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMcpServerToolsCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerTools:
    """`catalog` is None for a server that was never listed."""

    server: McpServer
    catalog: McpCatalog | None


class GetMcpServerTools:
    """Any role may read. The stored snapshot is answered; the server itself is not asked."""

    def __init__(self, *, servers: McpServerStore, catalogs: McpCatalogStore) -> None:
        self._servers = servers
        self._catalogs = catalogs

    async def execute(self, command: GetMcpServerToolsCommand) -> McpServerTools:
        """The snapshot. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        server = await existing_server(self._servers, organization_id, command.server)
        return McpServerTools(server=server, catalog=await self._catalogs.load(organization_id, server.id))
