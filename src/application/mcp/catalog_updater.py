"""Updates the stored catalogs: lists tools, and pins approved definitions. Above: refreshes by
people, runs and servers. Below: connections and the stored catalogs."""

import logging
from collections.abc import Callable, Sequence

from application.identity.ports import OrganizationStore
from application.mcp.ports import ConnectionScope, McpCatalogStore, McpConnections
from application.system.ports import Clock, IdSource
from application.system.turns import in_turns
from domain.audit.event import AuditAction, AuditEvent
from domain.identity.api_key import Principal
from domain.ids import AuditEventId
from domain.json_value import JsonObject
from domain.mcp.catalog import McpCatalog, McpToolDefinition
from domain.mcp.pinning import FirstUse, PinnedTool, Pinning, approves_all
from domain.mcp.server import McpServer
from domain.tools.names import model_facing_name

logger = logging.getLogger(__name__)

AUDITED_TOOLS = 100
"""Limit of tools with their own audit entry per listing; one more entry counts the rest."""


class CatalogUpdater:
    """Rules:
    - The first catalog of a server is approved by its registration. Of a server that is not
      trusted, definitions that hide text wait for approval, and all of them where the organization
      reviews them (`first_use`).
    - Tools that a later listing adds or changes enter quarantine, for every caller.
    - A listing never replaces a newer one.
    - Each tool that enters quarantine is audited `mcp_server.tool_quarantined`, by the key that
      listed it or `system`.
    """

    def __init__(
        self,
        *,
        catalogs: McpCatalogStore,
        connections: McpConnections,
        organizations: OrganizationStore,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._catalogs = catalogs
        self._organizations = organizations
        self._connections = connections
        self._clock = clock
        self._ids = ids

    async def relist(
        self, server: McpServer, scope: ConnectionScope, *, timeout_s: float, principal: Principal | None = None
    ) -> McpCatalog:
        """List the server's tools and store them; returns the stored catalog. A `principal` resets
        failures first. Raises McpFailure."""
        if principal is not None:
            self._connections.forgive(server.organization_id, server.id)
        listed = await self._connections.discover(server, scope, timeout_s=timeout_s)
        return await self.store(server, listed, principal=principal)

    async def store(self, server: McpServer, listed: McpCatalog, *, principal: Principal | None = None) -> McpCatalog:
        """Store a listing; returns the stored catalog, which may be a newer one."""
        while True:
            previous = await self._catalogs.load(server.organization_id, server.id)
            if previous is not None and _age(previous) > _age(listed):
                return previous
            holds = approves_all if previous else await self._holds(server)
            pinning = Pinning(listed, previous, holds=holds)
            async for _ in in_turns(pinning.steps()):
                continue
            catalog = pinning.catalog
            saved = await self._catalogs.save(
                server.organization_id,
                catalog,
                self._audit(server, pinning.news, principal),
                has_same_definitions=pinning.has_same_definitions,
            )
            if saved:
                async for tool in in_turns(pinning.news[:AUDITED_TOOLS]):
                    logger.warning(
                        "MCP tool quarantined until it is approved",
                        extra={"server_id": server.id, "server": server.config.slug, "tool": tool.definition.name},
                    )
                return catalog

    async def _holds(self, server: McpServer) -> Callable[[McpToolDefinition], bool]:
        """The definitions of a first catalog that wait for approval."""
        if server.config.trusted:
            return approves_all
        organization = await self._organizations.get(server.organization_id)
        return (FirstUse.REVIEW if organization is None else organization.first_use).holds

    def _audit(
        self, server: McpServer, news: Sequence[PinnedTool], principal: Principal | None
    ) -> tuple[AuditEvent, ...]:
        entries = [
            self._entry(
                server,
                principal,
                tool=model_facing_name(server.config.slug, tool.definition.name),
                details={
                    "slug": server.config.slug,
                    "name": tool.definition.name,
                    "change": "new" if tool.approved is None else "changed",
                    "digest": tool.definition.digest,
                    "hidden_text": tool.definition.hides_text,
                },
            )
            for tool in news[:AUDITED_TOOLS]
        ]
        if len(news) > AUDITED_TOOLS:
            further: JsonObject = {"slug": server.config.slug, "further_tools": len(news) - AUDITED_TOOLS}
            entries.append(self._entry(server, principal, tool=None, details=further))
        return tuple(entries)

    def _entry(
        self, server: McpServer, principal: Principal | None, *, tool: str | None, details: JsonObject
    ) -> AuditEvent:
        return AuditEvent(
            id=AuditEventId(self._ids.new("aud")),
            organization_id=server.organization_id,
            action=AuditAction.MCP_SERVER_TOOL_QUARANTINED,
            actor="system" if principal is None else principal.key_id,
            resource=server.id,
            at=self._clock.now(),
            tool=tool,
            server_id=server.id,
            details=details,
        )


def _age(catalog: McpCatalog) -> tuple[int, float]:
    return catalog.server_version, catalog.taken_at.timestamp()
