"""DeleteMcpServer: delete a server, its catalog, its installation and its connections."""

from dataclasses import dataclass

from application.audit.entries import audit_entry
from application.mcp.ports import McpConnections, McpServerStore
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_lookup import existing_server
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class DeleteMcpServer:
    """Rules:
    - Admins delete servers, with their installations.
    - Agents that list the slug keep it, and find its tools unavailable. Calls in progress finish.
    - Audited `mcp_server.deleted`.

    Raises: FORBIDDEN, NOT_FOUND.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        connections: McpConnections,
        installs: ServerInstalls,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._servers = servers
        self._connections = connections
        self._installs = installs
        self._clock = clock
        self._ids = ids

    async def execute(self, command: DeleteMcpServerCommand) -> None:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal, command.server)
        audit = audit_entry(
            principal,
            AuditAction.MCP_SERVER_DELETED,
            server.id,
            ids=self._ids,
            at=self._clock.now(),
            server_id=server.id,
            details={"slug": server.config.slug, "version": server.version},
        )
        if not await self._servers.delete(principal.organization_id, server.id, audit):
            raise not_found("MCP server", command.server)
        await self._connections.forget(principal.organization_id, server.id)
        await self._installs.discard(principal.organization_id, server.id)
