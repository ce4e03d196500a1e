"""RejectDefinition: keep a tool out that is new or has changed, so that it waits for no one."""

from dataclasses import dataclass, replace

from application.mcp.definition_decisions import definition_audit, definition_changed, definition_to_decide
from application.mcp.ports import McpCatalogStore, McpServerStore
from application.system.ports import Clock, IdSource
from domain.audit.event import AuditAction
from domain.errors import Violation, conflict, invalid
from domain.identity.api_key import Principal
from domain.mcp.catalog import MAX_REASON, Rejection
from domain.mcp.pinning import DefinitionState, PinnedTool


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectDefinitionCommand:
    """`server` is an id or a slug, `tool` the server's own name. With `digest`, only that
    definition is rejected. `reason` is for people."""

    principal: Principal
    server: str
    tool: str
    digest: str | None = None
    reason: str | None = None


class RejectDefinition:
    """Rules:
    - Admins reject. Runs do not get the tool, as before; it waits for no one any more.
    - The rejection is of the current definition: another one waits for a person again. The rejected
      one may be approved later.
    - An approved tool is not rejected: `policy` denies the use of such tools.
    - Rejecting a rejected tool changes nothing; otherwise audited `mcp_server.tool_rejected`.

    Raises: INVALID `reason_too_long`, FORBIDDEN, NOT_FOUND (`mcp_server_not_found`,
    `mcp_tool_not_found`), CONFLICT `mcp_tool_changed` (the definition is not the expected one),
    `mcp_tool_approved`.
    """

    def __init__(self, *, servers: McpServerStore, catalogs: McpCatalogStore, clock: Clock, ids: IdSource) -> None:
        self._servers = servers
        self._catalogs = catalogs
        self._clock = clock
        self._ids = ids

    async def execute(self, command: RejectDefinitionCommand) -> PinnedTool:
        principal = command.principal
        if command.reason is not None and len(command.reason) > MAX_REASON:
            fault = Violation(path="reason", message=f"must have at most {MAX_REASON} characters")
            raise invalid("reason_too_long", "The reason is too long.", fault)
        server, tool = await definition_to_decide(
            principal, command.server, command.tool, command.digest, servers=self._servers, catalogs=self._catalogs
        )
        if tool.state is DefinitionState.APPROVED:
            raise conflict(
                "mcp_tool_approved", f"The tool {command.tool!r} is approved; rules of a policy deny its use."
            )
        if tool.state is DefinitionState.REJECTED:
            return tool
        rejection = Rejection(by=principal.key_id, at=self._clock.now(), reason=command.reason)
        audit = definition_audit(
            principal,
            AuditAction.MCP_SERVER_TOOL_REJECTED,
            server,
            tool,
            ids=self._ids,
            at=rejection.at,
            reason=command.reason,
        )
        if not await self._catalogs.reject(principal.organization_id, server.id, tool.definition, rejection, audit):
            raise definition_changed(command.tool)
        return replace(tool, rejection=rejection)
