"""NameAgents: what agents are called, for lists of what is theirs."""

from collections.abc import Iterable, Mapping

from application.agents.ports import AgentName, AgentStore
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import AgentId


class NameAgents:
    """Any role may read; agents of another organization do not exist. One look for all of them."""

    def __init__(self, *, agents: AgentStore) -> None:
        self._agents = agents

    async def execute(self, principal: Principal, agent_ids: Iterable[AgentId]) -> Mapping[AgentId, AgentName]:
        """The names by id, those of deleted agents too; without agents that never were."""
        principal.require(Role.VIEWER)
        return await self._agents.names(principal.organization_id, frozenset(agent_ids))
