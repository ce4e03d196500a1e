"""Lookup of a registered server by id or slug."""

from application.mcp.ports import McpServerStore
from domain.errors import existing
from domain.ids import OrganizationId
from domain.mcp.server import McpServer


async def existing_server(servers: McpServerStore, organization_id: OrganizationId, id_or_slug: str) -> McpServer:
    """Raises: NOT_FOUND `mcp_server_not_found`."""
    return existing(await servers.get(organization_id, id_or_slug), "MCP server", id_or_slug)
