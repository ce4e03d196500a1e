"""UninstallMcpServer: remove a server's installation, or stop it in progress."""

from dataclasses import dataclass, replace

from application.audit.entries import audit_entry
from application.mcp.ports import McpConnections, McpServerStore, ServerStatus
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class UninstallMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class UninstallMcpServer:
    """Rules:
    - Admins uninstall servers; the registration remains. An installation in progress is stopped.
    - The files are removed at once, so a call in progress may fail.
    - A server without installation does not change and is not audited; otherwise audited
      `mcp_server.uninstalled`.

    Raises: FORBIDDEN, NOT_FOUND, PRECONDITION `version_conflict` (a concurrent change).
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        installs: ServerInstalls,
        statuses: ServerStatuses,
        connections: McpConnections,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._servers = servers
        self._installs = installs
        self._statuses = statuses
        self._connections = connections
        self._clock = clock
        self._ids = ids

    async def execute(self, command: UninstallMcpServerCommand) -> ServerStatus:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal, command.server)
        await self._installs.stop(server.id)
        # The installation may have been recorded just before it was stopped.
        server = await existing_server(self._servers, principal, server.id)
        if server.installation is not None:
            server = await self._forgotten(principal, server)
        await self._installs.discard(principal.organization_id, server.id)
        return self._statuses.of(server)

    async def _forgotten(self, principal: Principal, server: McpServer) -> McpServer:
        now = self._clock.now()
        installed = "" if server.installation is None else server.installation.version
        changed = replace(server, version=server.version + 1, installation=None, updated_at=now)
        audit = audit_entry(
            principal,
            AuditAction.MCP_SERVER_UNINSTALLED,
            server.id,
            ids=self._ids,
            at=now,
            server_id=server.id,
            details={"slug": server.config.slug, "version": changed.version, "installed": installed},
        )
        await self._servers.save(changed, expected_version=server.version, audit=audit)
        await self._connections.forget(principal.organization_id, server.id)
        return changed
