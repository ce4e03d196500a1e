"""Lookup of a registered server by id or slug."""

from application.mcp.ports import McpServerStore
from domain.identity.api_key import Principal
from domain.mcp.server import McpServer


async def existing_server(servers: McpServerStore, principal: Principal, id_or_slug: str) -> McpServer:
    """Raises: NOT_FOUND `mcp_server_not_found`, also for a server of a team that the caller does
    not see."""
    return principal.found(await servers.get(principal.organization_id, id_or_slug), "MCP server", id_or_slug)
