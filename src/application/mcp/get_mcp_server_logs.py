"""GetMcpServerLogs: what was printed when a server was installed, and what it printed to its error output since."""

from dataclasses import dataclass

from application.mcp.ports import McpConnections, McpInstaller, McpServerStore
from application.mcp.server_lookup import existing_server
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMcpServerLogsCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class GetMcpServerLogs:
    """Operators and above only: what a server prints may hold what it was given in secret."""

    def __init__(self, *, servers: McpServerStore, connections: McpConnections, installer: McpInstaller) -> None:
        self._servers = servers
        self._connections = connections
        self._installer = installer

    async def execute(self, command: GetMcpServerLogsCommand) -> str:
        """The bounded tail, empty for a server that printed nothing or is remote. Raises FORBIDDEN, NOT_FOUND."""
        command.principal.require(Role.OPERATOR)
        server = await existing_server(self._servers, command.principal.organization_id, command.server)
        return self._installer.log(server) + self._connections.logs(server)
