"""The catalog of a server: its listing without unusable and unused tools."""

from datetime import datetime

from domain.mcp.catalog import NO_VERSION, McpCatalog
from domain.mcp.server import McpServer
from domain.mcp.used_tools import used_tools
from infrastructure.mcp.catalogs.catalog import ToolListing, declared_listing, with_usable_schemas


async def catalog_of(
    server: McpServer,
    listed: ToolListing,
    *,
    at: datetime,
    protocol_version: str,
    server_name: str = "",
    instructions: str | None = None,
) -> McpCatalog:
    listing = await with_usable_schemas(listed)
    used, left_out = used_tools(server.config, listing.tools)
    return McpCatalog(
        server_id=server.id,
        server_version=server.version,
        protocol_version=protocol_version,
        server_name=server_name or server.config.slug,
        instructions=instructions,
        tools=used,
        skipped=(*listing.skipped, *left_out),
        taken_at=at,
    )


async def declared_catalog(server: McpServer, *, at: datetime) -> McpCatalog:
    """The catalog of a server with declared tools, which is not contacted."""
    return await catalog_of(
        server, await declared_listing(server.config.declared_tools), at=at, protocol_version=NO_VERSION
    )
