"""GetAgent: one agent at its newest version."""

from dataclasses import dataclass

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.role import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class GetAgentCommand:
    """`agent` is an id or a name."""

    principal: Principal
    agent: str


class GetAgent:
    """Any role may read; an agent of another organization does not exist."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, command: GetAgentCommand) -> Agent:
        """The agent. Raises NOT_FOUND."""
        command.principal.require(Role.VIEWER)
        return await existing_agent(self._agents, command.principal.organization_id, command.agent)
