"""DisconnectMcpServer: close a server's connections."""

from dataclasses import dataclass

from application.mcp.ports import McpConnections, McpServerStore, ServerStatus
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DisconnectMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class DisconnectMcpServer:
    """Operators disconnect servers. Calls in progress finish; a later call connects again. Raises:
    FORBIDDEN, NOT_FOUND."""

    def __init__(self, *, servers: McpServerStore, connections: McpConnections, statuses: ServerStatuses) -> None:
        self._servers = servers
        self._connections = connections
        self._statuses = statuses

    async def execute(self, command: DisconnectMcpServerCommand) -> ServerStatus:
        principal = command.principal
        principal.require(Permission.SERVERS_OPERATE)
        server = await existing_server(self._servers, principal, command.server)
        await self._connections.forget(principal.organization_id, server.id)
        return self._statuses.of(server)
