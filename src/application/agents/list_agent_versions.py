"""ListAgentVersions: what an agent was, version by version."""

from dataclasses import dataclass

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgentVersionsCommand:
    """`agent` is an id or a name."""

    principal: Principal
    agent: str
    page: PageRequest = PageRequest()


class ListAgentVersions:
    """Any role may read; newest version first."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, command: ListAgentVersionsCommand) -> Page[Agent]:
        """One page. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        agent = await existing_agent(self._agents, organization_id, command.agent)
        return await self._agents.versions(organization_id, agent.id, command.page)
