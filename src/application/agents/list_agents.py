"""ListAgents: an organization's agents."""

from dataclasses import dataclass

from application.agents.ports import AgentStore
from application.system.pages import Page, PageRequest
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ListAgentsCommand:
    """Which page."""

    principal: Principal
    page: PageRequest = PageRequest()


class ListAgents:
    """Any role may read; newest agent first, each at its newest version."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, command: ListAgentsCommand) -> Page[Agent]:
        """One page."""
        command.principal.require(Role.VIEWER)
        return await self._agents.page(command.principal.organization_id, command.page)
