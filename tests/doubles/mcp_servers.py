"""MCP servers and their catalogs in memory."""

from dataclasses import replace

from application.system.pages import Page, PageRequest
from domain.audit.event import AuditEvent
from domain.errors import conflict, not_found, require_version
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog, McpToolDefinition, Rejection
from domain.mcp.pinning import DefinitionState, pinned_tool, with_approved, with_rejected
from domain.mcp.server import McpServer
from domain.teams import Teams, sees
from tests.doubles.owners import require_group, seen
from tests.doubles.paging import by_time, newest_first
from tests.doubles.state import InMemoryState


class InMemoryMcpServerStore:
    """The `McpServerStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def add(self, server: McpServer, audit: AuditEvent) -> None:
        """Store a new server."""
        require_group(self._state, server.organization_id, server.team)
        self._refuse_taken_slug(server)
        self._state.servers[server.id] = server
        self._state.record(audit)

    async def save(self, server: McpServer, *, expected_version: int, audit: AuditEvent) -> None:
        """Store a change."""
        stored = await self.get(server.organization_id, server.id)
        if stored is None:
            raise not_found("MCP server", server.id)
        require_version("MCP server", stored.version, expected=expected_version)
        require_group(self._state, server.organization_id, server.team, former=stored.team)
        self._refuse_taken_slug(server)
        self._state.servers[server.id] = server
        self._state.record(audit)

    async def get(self, organization_id: OrganizationId, id_or_slug: str) -> McpServer | None:
        """By id or slug."""
        return next(
            (server for server in self._of(organization_id) if id_or_slug in (server.id, server.config.slug)),
            None,
        )

    async def page(self, organization_id: OrganizationId, request: PageRequest) -> Page[McpServer]:
        """Servers, newest first."""
        return newest_first(
            seen(self._state, request.teams, self._of(organization_id), lambda server: server.id),
            lambda server: by_time(server.created_at, server.id),
            request,
        )

    async def is_empty(self) -> bool:
        """Whether no organization has a server."""
        return not self._state.servers

    async def delete(self, organization_id: OrganizationId, server_id: McpServerId, audit: AuditEvent) -> bool:
        """Remove the server and its catalog."""
        if all(server.id != server_id for server in self._of(organization_id)):
            return False
        del self._state.servers[server_id]
        self._state.catalogs.pop(server_id, None)
        self._state.record(audit)
        return True

    def _of(self, organization_id: OrganizationId) -> list[McpServer]:
        return [server for server in self._state.servers.values() if server.organization_id == organization_id]

    def _refuse_taken_slug(self, server: McpServer) -> None:
        for other in self._of(server.organization_id):
            if other.config.slug == server.config.slug and other.id != server.id:
                raise conflict("mcp_server_slug_taken", f"There is already an MCP server {server.config.slug!r}.")


class InMemoryMcpCatalogStore:
    """The `McpCatalogStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> McpCatalog | None:
        """The stored snapshot, or None."""
        return self._state.catalogs.get(server_id) if self._has(organization_id, server_id) else None

    async def save(
        self,
        organization_id: OrganizationId,
        catalog: McpCatalog,
        audit: tuple[AuditEvent, ...] = (),
        *,
        has_same_definitions: bool = False,
    ) -> bool:
        """Replace the snapshot that this one was made from, unless its server is gone."""
        if not self._has(organization_id, catalog.server_id):
            return True
        stored = self._state.catalogs.get(catalog.server_id)
        if (0 if stored is None else stored.revision) != catalog.revision:
            return False
        self._state.catalogs[catalog.server_id] = replace(catalog, revision=catalog.revision + 1)
        for event in audit:
            self._state.record(event)
        return True

    async def approve(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        audit: AuditEvent,
    ) -> bool:
        """Take the tool out of quarantine, if it stands there with this definition."""
        catalog = await self.load(organization_id, server_id)
        if catalog is None or _state_of(catalog, definition) in (None, DefinitionState.APPROVED):
            return False
        self._replace(with_approved(catalog, definition.name), audit)
        return True

    async def reject(
        self,
        organization_id: OrganizationId,
        server_id: McpServerId,
        definition: McpToolDefinition,
        rejection: Rejection,
        audit: AuditEvent,
    ) -> bool:
        """Keep the tool out, if it waits with this definition."""
        catalog = await self.load(organization_id, server_id)
        if catalog is None or _state_of(catalog, definition) is not DefinitionState.QUARANTINED:
            return False
        self._replace(with_rejected(catalog, definition.name, rejection), audit)
        return True

    def _replace(self, catalog: McpCatalog, audit: AuditEvent) -> None:
        self._state.catalogs[catalog.server_id] = replace(catalog, revision=catalog.revision + 1)
        self._state.record(audit)

    def _has(self, organization_id: OrganizationId, server_id: McpServerId) -> bool:
        server = self._state.servers.get(server_id)
        return server is not None and server.organization_id == organization_id


class InMemoryQuarantineCounts:
    """The `QuarantineCounts` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def awaiting(self, organization_id: OrganizationId, *, teams: Teams = None) -> dict[McpServerId, int]:
        """Of each server that has any."""
        return {
            server_id: catalog.awaiting_approval
            for server_id, catalog in self._state.catalogs.items()
            if (server := self._state.servers[server_id]).organization_id == organization_id
            and sees(teams, server.team)
            and catalog.awaiting_approval
        }


def _state_of(catalog: McpCatalog, definition: McpToolDefinition) -> DefinitionState | None:
    """The state of the tool; None if it has another definition."""
    tool = pinned_tool(catalog, definition.name)
    return None if tool is None or tool.definition.digest != definition.digest else tool.state
