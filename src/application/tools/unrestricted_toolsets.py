"""Toolsets of an agent or organization before policy, from stored catalogs."""

from dataclasses import replace

from application.mcp.ports import McpServerStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from application.tools.agents_as_tools import AgentsAsTools
from application.tools.toolset import Toolset
from application.tools.toolset_builder import ToolsetBuilder
from domain.agents.agent import AgentConfig
from domain.ids import OrganizationId
from domain.policy.rules import NO_POLICIES
from domain.tools.tool import Tool

_WITH_EVERYTHING = AgentConfig(name="everything", model="none:none")


class UnrestrictedToolsets:
    """No server is contacted or started."""

    def __init__(self, *, catalog: ToolsetBuilder, servers: McpServerStore, agents_as_tools: AgentsAsTools) -> None:
        self._catalog = catalog
        self._servers = servers
        self._agents_as_tools = agents_as_tools

    async def of_agent(self, organization_id: OrganizationId, config: AgentConfig) -> Toolset:
        """Tools and agents that the agent lists, without allowlists and policies."""
        return await self._unrestricted(
            organization_id, config, await self._agents_as_tools.of(organization_id, config)
        )

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
            organization_id, config, await self._agents_as_tools.of_organization(organization_id)
        )

    async def _unrestricted(
        self, organization_id: OrganizationId, config: AgentConfig, agents: tuple[Tool, ...]
    ) -> Toolset:
        unrestricted = replace(config, tool_allowlist=None, tool_policies=NO_POLICIES)
        return await self._catalog.listed_toolset(unrestricted, organization_id, restricted=False, agents=agents)
