"""ListTools: lists native tools and the tools of the organization's MCP servers, with their
health."""

from dataclasses import dataclass
from datetime import datetime

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.identity.read_circumstances import Acting
from application.mcp.ports import McpCatalogStore, McpConnections, McpServerStore, ServerState
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.system.ports import Clock
from application.tools.server_tools import bound_tool, is_unregistered
from application.tools.tool_health import ToolHealth
from application.tools.toolset_builder import ToolsetBuilder
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.mcp.server import McpServer
from domain.tools.tool import Tool

_AVAILABLE = frozenset({ServerState.DISCONNECTED, ServerState.CONNECTING, ServerState.CONNECTED})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolListing:
    """A tool and its health.

    - `health`: for MCP tools that await no approval, the state of the server's connection in this
      process.
    - `available`: whether a call would be tried now.
    - `as_of`, `age_s`: time and age of the server's last listing.
    """

    tool: Tool
    server: str | None
    health: ToolHealth
    available: bool
    as_of: datetime | None
    age_s: float | None


class ListTools:
    """Rules:
    - Requires `viewer`.
    - Tools of a lost server with the strategy `unregister` are left out.
    - Tools come from the stored catalogs. No server is contacted, listed before or not: that
      requires `operator`.
    """

    def __init__(
        self,
        *,
        catalog: ToolsetBuilder,
        agents: AgentStore,
        servers: McpServerStore,
        catalogs: McpCatalogStore,
        connections: McpConnections,
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._agents = agents
        self._servers = servers
        self._catalogs = catalogs
        self._connections = connections
        self._clock = clock

    async def execute(self, principal: Principal, agent: str | None = None) -> tuple[ToolListing, ...]:
        """All tools, or those of `agent` (id or name) for the caller, in the order of the model's
        list: native tools, then MCP tools by name. Raises NOT_FOUND for an unknown agent."""
        principal.require(Role.VIEWER)
        wanted = None if agent is None else await self._tools_of_agent(principal, agent)
        listings = [
            ToolListing(
                tool=self._catalog.native_tool(kind),
                server=None,
                health=ToolHealth.AVAILABLE,
                available=True,
                as_of=None,
                age_s=None,
            )
            for kind in self._catalog.native_types
        ]
        for server in await self._all_servers(principal):
            listings += await self._tools_of(server)
        return _in_order([listing for listing in listings if wanted is None or listing.tool.name in wanted])

    async def _tools_of_agent(self, principal: Principal, name: str) -> frozenset[str]:
        agent = await existing_agent(self._agents, principal, name)
        acting = Acting(actor=principal.key_id)
        toolset = await self._catalog.listed_toolset(agent.config, principal.organization_id, acting=acting)
        return frozenset(tool.name for tool in toolset.tools)

    async def _all_servers(self, principal: Principal) -> list[McpServer]:
        found: list[McpServer] = []
        request = PageRequest(limit=MAX_PAGE_SIZE, teams=principal.visible_teams)
        while True:
            page = await self._servers.page(principal.organization_id, request)
            found += page.items
            if page.next_cursor is None:
                return found
            request = request.next(page.next_cursor)

    async def _tools_of(self, server: McpServer) -> list[ToolListing]:
        catalog = await self._catalogs.load(server.organization_id, server.id)
        if catalog is None or is_unregistered(server, self._connections):
            return []
        if not server.config.enabled:
            state = ServerState.DISABLED
        elif server.lacks_installation:
            state = ServerState.NOT_INSTALLED
        else:
            state = self._connections.status(server).state
        age = self._clock.now() - catalog.taken_at
        return [
            ToolListing(
                tool=bound_tool(server, definition),
                server=server.config.slug,
                health=ToolHealth.QUARANTINED if definition.name in catalog.quarantined else ToolHealth(state.value),
                available=state in _AVAILABLE and definition.name not in catalog.quarantined,
                as_of=catalog.taken_at,
                age_s=max(0.0, age.total_seconds()),
            )
            for definition in catalog.tools
            if server.config.offers(definition.name)
        ]


def _in_order(listings: list[ToolListing]) -> tuple[ToolListing, ...]:
    return tuple(sorted(listings, key=lambda listing: (listing.server is not None, listing.tool.name)))
