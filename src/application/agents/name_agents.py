"""NameAgents: names of agents, for lists of other things."""

from collections.abc import Iterable, Mapping

from application.agents.ports import AgentName, AgentStore
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import AgentId


class NameAgents:
    """Any role may read the agents that it sees, in one query."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, principal: Principal, agent_ids: Iterable[AgentId]) -> Mapping[AgentId, AgentName]:
        """The names by id, including deleted agents."""
        principal.require(Role.VIEWER)
        return await self._agents.names(principal.organization_id, frozenset(agent_ids), teams=principal.visible_teams)
