"""GetMcpServer: one registered server."""

from dataclasses import dataclass

from application.mcp.ports import McpServerStore
from application.mcp.server_lookup import existing_server
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import McpServer


@dataclass(frozen=True, slots=True, kw_only=True)
class GetMcpServerCommand:
    """`server` is an id or a slug."""

    principal: Principal
    server: str


class GetMcpServer:
    """Any role may read. Values of env and headers are in the result; no surface may show them."""

    def __init__(self, *, servers: McpServerStore) -> None:
        self._servers = servers

    async def execute(self, command: GetMcpServerCommand) -> McpServer:
        """The server. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        return await existing_server(self._servers, command.principal.organization_id, command.server)
