"""InstallMcpServer: install an npm, python or copied server on this machine, in the background."""

from dataclasses import dataclass

from application.mcp.installer import McpInstaller
from application.mcp.mcp_switch import McpSwitch
from application.mcp.ports import McpServerStore, ServerStatus
from application.mcp.server_installs import ServerInstalls
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from domain.errors import conflict
from domain.identity.api_key import Principal
from domain.identity.permission import Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class InstallMcpServer:
    """Rules:
    - Admins install servers. The status has the progress or the reason of a failure. An installed
      server starts without network.
    - The organization may have this kind of server (`mcp_kinds`).
    - Installing during an installation changes nothing.
    - Installations are never updated: to change the version, uninstall first.
    - A server whose files are missing on this machine is installed again.

    Raises: FORBIDDEN (`mcp_kind_not_permitted`), NOT_FOUND, CONFLICT `mcp_server_not_installable`,
    `mcp_server_installed`.
    """

    def __init__(
        self,
        *,
        servers: McpServerStore,
        switch: McpSwitch,
        installs: ServerInstalls,
        installer: McpInstaller,
        statuses: ServerStatuses,
    ) -> None:
        self._servers = servers
        self._switch = switch
        self._installs = installs
        self._installer = installer
        self._statuses = statuses

    async def execute(self, command: InstallMcpServerCommand) -> ServerStatus:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal, command.server)
        slug = server.config.slug
        if not server.config.needs_installation:
            raise conflict(
                "mcp_server_not_installable",
                f"The MCP server {slug!r} is not installed: it is run or reached in place.",
            )
        await self._switch.require_kind(principal.organization_id, server.config)
        installation = server.installation
        if installation is not None and self._installer.has(installation):
            raise conflict(
                "mcp_server_installed",
                f"The MCP server {slug!r} is installed in version {installation.version}; uninstall it first.",
            )
        self._installs.start(principal, server)
        return self._statuses.of(server)
