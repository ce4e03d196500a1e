"""ApproveDefinition: take a tool out of quarantine."""

from dataclasses import dataclass

from application.mcp.ports import McpCatalogStore, McpServerStore
from application.mcp.server_lookup import existing_server
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction, AuditEvent
from domain.errors import ServiceError, conflict, existing
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import AuditEventId
from domain.mcp.pinning import DefinitionState, PinnedTool, pinned_tool
from domain.mcp.server import McpServer
from domain.tools.names import model_facing_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproveDefinitionCommand:
    """`server` is an id or a slug, `tool` the server's own name. With `digest`, only that
    definition is approved."""

    principal: Principal
    server: str
    tool: str
    digest: str | None = None


class ApproveDefinition:
    """Rules:
    - Admins approve. The current definition becomes the approved one.
    - Later runs have the tool; a run under way with another definition does not.
    - Approving an approved tool changes nothing; otherwise audited `mcp_server.tool_approved`.

    Raises: FORBIDDEN, NOT_FOUND (`mcp_server_not_found`, `mcp_tool_not_found`), CONFLICT
    `mcp_tool_changed` (the definition is not the expected one).
    """

    def __init__(self, *, servers: McpServerStore, catalogs: McpCatalogStore, clock: Clock, ids: IdSource) -> None:
        self._servers = servers
        self._catalogs = catalogs
        self._clock = clock
        self._ids = ids

    async def execute(self, command: ApproveDefinitionCommand) -> PinnedTool:
        principal = command.principal
        principal.require(Permission.SERVERS_MANAGE)
        server = await existing_server(self._servers, principal.organization_id, command.server)
        catalog = await self._catalogs.load(principal.organization_id, server.id)
        tool = existing(None if catalog is None else pinned_tool(catalog, command.tool), "MCP tool", command.tool)
        if command.digest not in (None, tool.definition.digest):
            raise _changed(command.tool)
        if tool.state is DefinitionState.APPROVED:
            return tool
        audit = self._audit(principal, server, tool)
        if not await self._catalogs.approve(principal.organization_id, server.id, tool.definition, audit):
            raise _changed(command.tool)
        return PinnedTool(definition=tool.definition, approved=tool.definition)

    def _audit(self, principal: Principal, server: McpServer, tool: PinnedTool) -> AuditEvent:
        slug, name = server.config.slug, tool.definition.name
        return AuditEvent(
            id=AuditEventId(self._ids.new("aud")),
            organization_id=principal.organization_id,
            action=AuditAction.MCP_SERVER_TOOL_APPROVED,
            actor=principal.key_id,
            resource=server.id,
            at=self._clock.now(),
            tool=model_facing_name(slug, name),
            server_id=server.id,
            details={
                "slug": slug,
                "name": name,
                "change": "new" if tool.approved is None else "changed",
                "digest": tool.definition.digest,
            },
        )


def _changed(tool: str) -> ServiceError:
    return conflict("mcp_tool_changed", f"The definition of the tool {tool!r} has changed; read the difference again.")
