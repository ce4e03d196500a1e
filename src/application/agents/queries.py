"""Queries of agents."""

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.system.pages import FIRST_PAGE, Page, PageRequest
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.role import Role


class GetAgent:
    """Any role may read."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, principal: Principal, agent: str) -> Agent:
        """Raises NOT_FOUND. `agent` is an id or a name."""
        principal.require(Role.VIEWER)
        return await existing_agent(self._agents, principal, agent)


class ListAgents:
    """Any role may read; newest agent first, each at its newest version."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, principal: Principal, page: PageRequest = FIRST_PAGE) -> Page[Agent]:
        principal.require(Role.VIEWER)
        return await self._agents.page(principal.organization_id, page.seen_by(principal))


class ListAgentVersions:
    """Any role may read; newest version first."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, principal: Principal, agent: str, page: PageRequest = FIRST_PAGE) -> Page[Agent]:
        """Raises NOT_FOUND. `agent` is an id or a name."""
        principal.require(Role.VIEWER)
        found = await existing_agent(self._agents, principal, agent)
        return await self._agents.versions(principal.organization_id, found.id, page)
