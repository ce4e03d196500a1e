"""What approving and rejecting a tool's definition share: the definition that was read, and its
audit entry."""

from datetime import datetime

from application.audit.entries import audit_entry
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.mcp.server_lookup import existing_server
from application.system.ports import IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict, existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from domain.mcp.pinning import PinnedTool, pinned_tool
from domain.mcp.server import McpServer
from domain.tools.names import model_facing_name


async def definition_to_decide(
    principal: Principal,
    server: str,
    tool: str,
    digest: str | None,
    *,
    servers: McpServerStore,
    catalogs: McpCatalogStore,
) -> tuple[McpServer, PinnedTool]:
    """The server (by id or slug) and its tool. Raises FORBIDDEN, NOT_FOUND (`mcp_server_not_found`,
    `mcp_tool_not_found`), CONFLICT `mcp_tool_changed` if the definition has another digest than the
    given one."""
    principal.require(Permission.SERVERS_MANAGE)
    found = await existing_server(servers, principal, server)
    catalog = await catalogs.load(principal.organization_id, found.id)
    pinned = existing(None if catalog is None else pinned_tool(catalog, tool), "MCP tool", tool)
    if digest not in (None, pinned.definition.digest):
        raise definition_changed(tool)
    return found, pinned


def definition_audit(
    principal: Principal,
    action: AuditAction,
    server: McpServer,
    tool: PinnedTool,
    *,
    ids: IdSource,
    at: datetime,
    reason: str | None = None,
) -> AuditEvent:
    slug, name = server.config.slug, tool.definition.name
    details: JsonObject = {
        "slug": slug,
        "name": name,
        "change": "new" if tool.approved is None else "changed",
        "digest": tool.definition.digest,
    }
    if reason is not None:
        details["reason"] = reason
    return audit_entry(
        principal,
        action,
        server.id,
        ids=ids,
        at=at,
        server_id=server.id,
        tool=model_facing_name(slug, name),
        details=details,
    )


def definition_changed(tool: str) -> ServiceError:
    return conflict("mcp_tool_changed", f"The definition of the tool {tool!r} has changed; read the difference again.")
