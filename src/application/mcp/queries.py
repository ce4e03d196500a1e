"""Reading MCP servers: one, many, and the status, log and tools of one."""

from dataclasses import dataclass

from application.mcp.ports import McpCatalogStore, McpConnections, McpInstaller, McpServerStore, ServerStatus
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer


class GetMcpServer:
    """Any role may read. Values of env and headers are in the result; no surface may show them."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, principal: Principal, server: str) -> McpServer:
        """The server. Raises NOT_FOUND. `server` is an id or a slug."""
        principal.require(Role.VIEWER)
        return await existing_server(self._servers, principal.organization_id, server)


class ListMcpServers:
    """Any role may read; newest first."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[McpServer]:
        """One page."""
        principal.require(Role.VIEWER)
        return await self._servers.page(principal.organization_id, page)


class GetMcpServerStatus:
    """Any role may read. Asking does not connect."""

    def __init__(self, *, servers: McpServerStore, statuses: ServerStatuses) -> None:
        self._servers = servers
        self._statuses = statuses

    async def execute(self, principal: Principal, server: str) -> ServerStatus:
        """The state, over all processes on the database. Raises NOT_FOUND. `server` is an id or a slug."""
        principal.require(Role.VIEWER)
        found = await existing_server(self._servers, principal.organization_id, server)
        return await self._statuses.everywhere(found)


class GetMcpServerLogs:
    """Operators and above only: what a server prints may hold what it was given in secret."""

    def __init__(self, *, servers: McpServerStore, connections: McpConnections, installer: McpInstaller) -> None:
        self._servers = servers
        self._connections = connections
        self._installer = installer

    async def execute(self, principal: Principal, server: str) -> str:
        """The bounded tail. It is empty for a server that printed nothing or is remote. Raises FORBIDDEN, NOT_FOUND.
        `server` is an id or a slug."""
        principal.require(Role.OPERATOR)
        found = await existing_server(self._servers, principal.organization_id, server)
        return self._installer.log(found) + self._connections.logs(found)


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

    async def execute(self, principal: Principal, server: str) -> McpServerTools:
        """The snapshot. Raises NOT_FOUND. `server` is an id or a slug."""
        principal.require(Role.VIEWER)
        organization_id = principal.organization_id
        found = await existing_server(self._servers, organization_id, server)
        return McpServerTools(server=found, catalog=await self._catalogs.load(organization_id, found.id))
