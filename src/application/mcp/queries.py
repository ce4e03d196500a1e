"""Queries of MCP servers."""

from collections.abc import Mapping
from dataclasses import dataclass

from application.mcp.describe_mcp_servers import QuarantineCounts
from application.mcp.installer import McpInstaller
from application.mcp.ports import ConfinementReport, McpCatalogStore, McpConnections, McpServerStore, ServerStatus
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.identity.role import Role
from domain.ids import McpServerId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer


class GetMcpServer:
    """Requires `viewer`. The result has the values of env and headers; interfaces must not show
    them."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, principal: Principal, server: str) -> McpServer:
        """`server` is an id or a slug. Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        return await existing_server(self._servers, principal, server)


class ListMcpServers:
    """Requires `viewer`; newest first."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[McpServer]:
        principal.require(Role.VIEWER)
        return await self._servers.page(principal.organization_id, page.seen_by(principal))


class GetMcpServerStatus:
    """Requires `viewer`. Opens no connection."""

    def __init__(self, *, servers: McpServerStore, statuses: ServerStatuses) -> None:
        self._servers = servers
        self._statuses = statuses

    async def execute(self, principal: Principal, server: str) -> ServerStatus:
        """The state over all processes on the database. `server` is an id or a slug. Raises
        NOT_FOUND."""
        principal.require(Role.VIEWER)
        found = await existing_server(self._servers, principal, server)
        return await self._statuses.everywhere(found)


class DescribeConfinement:
    """Requires `operator`. Workers on other machines may confine otherwise."""

    def __init__(self, *, confinement: ConfinementReport) -> None:
        self._confinement = confinement

    async def execute(self, principal: Principal) -> str:
        """How this process confines started servers. Raises FORBIDDEN."""
        principal.require(Permission.SERVERS_OPERATE)
        return await self._confinement.describe()


class GetMcpServerLogs:
    """Requires `operator`: the output of a server may contain its secrets."""

    def __init__(self, *, servers: McpServerStore, connections: McpConnections, installer: McpInstaller) -> None:
        self._servers = servers
        self._connections = connections
        self._installer = installer

    async def execute(self, principal: Principal, server: str) -> str:
        """The bounded tail; empty for remote servers. `server` is an id or a slug. Raises
        FORBIDDEN, NOT_FOUND."""
        principal.require(Permission.SERVERS_OPERATE)
        found = await existing_server(self._servers, principal, server)
        return self._installer.log(found) + self._connections.logs(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerTools:
    """`catalog` is None if the server was never listed."""

    server: McpServer
    catalog: McpCatalog | None


class CountQuarantinedTools:
    """Requires `viewer`. Reads no definitions."""

    def __init__(self, *, quarantine_counts: QuarantineCounts) -> None:
        self._counts = quarantine_counts

    async def execute(self, principal: Principal) -> Mapping[McpServerId, int]:
        """How many tools of each server that the caller sees wait for approval. Servers without any
        are left out."""
        principal.require(Role.VIEWER)
        return await self._counts.awaiting(principal.organization_id, teams=principal.visible_teams)


class GetMcpServerTools:
    """Requires `viewer`. Answers with the stored snapshot, without contacting the server."""

    def __init__(self, *, servers: McpServerStore, catalogs: McpCatalogStore) -> None:
        self._servers = servers
        self._catalogs = catalogs

    async def execute(self, principal: Principal, server: str) -> McpServerTools:
        """`server` is an id or a slug. Raises NOT_FOUND."""
        principal.require(Role.VIEWER)
        found = await existing_server(self._servers, principal, server)
        catalog = await self._catalogs.load(principal.organization_id, found.id)
        return McpServerTools(server=found, catalog=catalog)
