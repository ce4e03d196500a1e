"""RefreshMcpServer: list a server's tools now, connecting if needed, and store the catalog."""

from dataclasses import dataclass

from application.mcp.catalog_updater import CatalogUpdater
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import ConnectionScope, McpFailure, McpFailureKind, McpServerStore
from application.mcp.server_lookup import existing_server
from domain.errors import ErrorKind, ServiceError, conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.mcp.catalog import McpCatalog

DEFAULT_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class RefreshMcpServer:
    """Rules:
    - Operators refresh servers. Later runs see the new catalog.
    - A server that cannot be listed keeps its last valid catalog.
    - Only the first catalog is approved; later additions and changes enter quarantine.
    - Earlier failures of the server are reset.

    Raises: FORBIDDEN (`mcp_kind_not_permitted`), NOT_FOUND, CONFLICT `mcp_disabled`,
    `mcp_server_disabled`, `mcp_server_not_installed`, UNAVAILABLE `mcp_server_unavailable` (extra
    `reason`: an McpFailureKind).
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        catalog_updater: CatalogUpdater,
        switch: McpSwitch,
        deadline_s: float = DEFAULT_DEADLINE_S,
    ) -> None:
        self._servers = servers
        self._catalog_updater = catalog_updater
        self._switch = switch
        self._deadline_s = deadline_s

    async def execute(self, command: RefreshMcpServerCommand) -> McpCatalog:
        principal = command.principal
        principal.require(Permission.SERVERS_OPERATE)
        server = await existing_server(self._servers, principal, command.server)
        if not await self._switch.is_on(principal.organization_id):
            raise conflict("mcp_disabled", "MCP is disabled.")
        await self._switch.require_kind(principal.organization_id, server.config)
        if not server.config.enabled:
            raise conflict("mcp_server_disabled", f"The MCP server {server.config.slug!r} is disabled.")
        scope = ConnectionScope(organization_id=principal.organization_id, person_id=principal.person_id)
        try:
            return await self._catalog_updater.relist(server, scope, timeout_s=self._deadline_s, principal=principal)
        except McpFailure as failure:
            if failure.kind is McpFailureKind.DISABLED:
                raise conflict("mcp_server_disabled", failure.detail) from failure
            if failure.kind is McpFailureKind.NOT_INSTALLED:
                detail = f"The MCP server {server.config.slug!r} is not installed."
                raise conflict("mcp_server_not_installed", detail) from failure
            raise ServiceError(
                "mcp_server_unavailable",
                ErrorKind.UNAVAILABLE,
                f"The tools of the MCP server {server.config.slug!r} could not be listed: {failure.detail}",
                extra={"reason": failure.kind.value},
            ) from failure
