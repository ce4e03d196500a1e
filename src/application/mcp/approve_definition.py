"""ApproveDefinition: take a tool out of quarantine."""

from dataclasses import dataclass

from application.mcp.definition_decisions import definition_audit, definition_changed, definition_to_decide
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.identity.api_key import Principal
from domain.mcp.pinning import DefinitionState, PinnedTool


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
    - Admins approve. The current definition becomes the approved one, also if it was rejected
      before.
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
        server, tool = await definition_to_decide(
            principal, command.server, command.tool, command.digest, servers=self._servers, catalogs=self._catalogs
        )
        if tool.state is DefinitionState.APPROVED:
            return tool
        action, now = AuditAction.MCP_SERVER_TOOL_APPROVED, self._clock.now()
        audit = definition_audit(principal, action, server, tool, ids=self._ids, at=now)
        if not await self._catalogs.approve(principal.organization_id, server.id, tool.definition, audit):
            raise definition_changed(command.tool)
        return PinnedTool(definition=tool.definition, approved=tool.definition)
