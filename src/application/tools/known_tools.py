"""The tools that an agent or an organization has before any policy is asked, as servers have listed them before."""

from dataclasses import replace

from application.mcp.ports import McpServerStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.tools.agent_tools import AgentTools
from application.tools.tool_catalog import ToolCatalog
from application.tools.toolset import Toolset
from domain.agents.agent import AgentConfig
from domain.ids import OrganizationId
from domain.policy.rules import NO_POLICIES
from domain.tools.tool import Tool

_WITH_EVERYTHING = AgentConfig(name="everything", model="none:none")


class KnownTools:
    """No server is asked, and none is started."""

    def __init__(self, *, catalog: ToolCatalog, servers: McpServerStore, agent_tools: AgentTools) -> None:
        self._catalog = catalog
        self._servers = servers
        self._agent_tools = agent_tools

    async def of_agent(self, organization_id: OrganizationId, config: AgentConfig) -> Toolset:
        """What the agent lists, whatever allowlists and policies say of it; agents too, which clients of the gateway have."""
        return await self._unrestricted(organization_id, config, await self._agent_tools.of(organization_id, config))

    async def of_organization(self, organization_id: OrganizationId) -> Toolset:
        """Native tools, all agents, and the tools of all servers."""
        slugs: list[str] = []
        request = PageRequest(limit=MAX_PAGE_SIZE)
        while True:
            page = await self._servers.page(organization_id, request)
            slugs += [server.config.slug for server in page.items]
            if page.next_cursor is None:
                break
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=page.next_cursor)
        config = replace(_WITH_EVERYTHING, tools=self._catalog.native_types, mcp_servers=tuple(slugs))
        return await self._unrestricted(
            organization_id, config, await self._agent_tools.of_organization(organization_id)
        )

    async def _unrestricted(
        self, organization_id: OrganizationId, config: AgentConfig, agents: tuple[Tool, ...]
    ) -> Toolset:
        unrestricted = replace(config, tool_allowlist=None, tool_policies=NO_POLICIES)
        return await self._catalog.listed_toolset(unrestricted, organization_id, restricted=False, agents=agents)
