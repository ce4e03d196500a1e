"""GetMcpServerStatus: whether a server is installed and connected, and what went wrong last."""

from dataclasses import dataclass

from application.mcp.ports import McpServerStore, ServerStatus
from application.mcp.server_lookup import existing_server
from application.mcp.server_status import ServerStatuses
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMcpServerStatusCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class GetMcpServerStatus:
    """Any role may read. Asking does not connect."""

    def __init__(self, *, servers: McpServerStore, statuses: ServerStatuses) -> None:
        self._servers = servers
        self._statuses = statuses

    async def execute(self, command: GetMcpServerStatusCommand) -> ServerStatus:
        """The state, over all processes on the database. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        server = await existing_server(self._servers, command.principal.organization_id, command.server)
        return await self._statuses.everywhere(server)
