"""Toolsets of an agent or organization before policy, from stored catalogs."""

from dataclasses import dataclass, replace

from application.mcp.ports import McpServerStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import AgentConfig
from domain.ids import OrganizationId
from domain.policy.rules import NO_POLICIES
from domain.teams import Teams
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfEveryTeam(AgentConfig):
    """What no agent is: it may use what any team owns."""

    @property
    def usable_teams(self) -> Teams:
        return None


_WITH_EVERYTHING = _OfEveryTeam(name="everything", model="none:none")


class UnrestrictedToolsets:
    """No server is contacted or started."""

    def __init__(self, *, catalog: ToolsetBuilder, servers: McpServerStore, agents_as_tools: AgentsAsTools) -> None:
        self._catalog = catalog
        self._servers = servers
        self._agents_as_tools = agents_as_tools

    async def of_agent(self, organization_id: OrganizationId, config: AgentConfig) -> Toolset:
        """Tools and agents that the agent lists, without allowlists and policies."""
        agents = await self._agents_as_tools.of(organization_id, config)
        return await self._unrestricted(organization_id, config, agents)

    async def of_organization(self, organization_id: OrganizationId, *, teams: Teams = None) -> Toolset:
        """Native tools, all agents, and the tools of all servers; of what teams own, that of
        `teams`."""
        slugs: list[str] = []
        request = PageRequest(limit=MAX_PAGE_SIZE, teams=teams)
        while True:
            page = await self._servers.page(organization_id, request)
            slugs += [server.config.slug for server in page.items]
            if page.next_cursor is None:
                break
            request = request.next(page.next_cursor)
        config = replace(_WITH_EVERYTHING, tools=self._catalog.native_types, mcp_servers=tuple(slugs))
        agents = await self._agents_as_tools.of_organization(organization_id, teams=teams)
        return await self._unrestricted(organization_id, config, agents)

    async def _unrestricted(
        self, organization_id: OrganizationId, config: AgentConfig, agents: tuple[Tool, ...]
    ) -> Toolset:
        unrestricted = replace(config, tool_allowlist=None, tool_policies=NO_POLICIES)
        return await self._catalog.listed_toolset(unrestricted, organization_id, restricted=False, agents=agents)
