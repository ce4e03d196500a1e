"""Finds an agent by its id or name."""

from application.agents.ports import AgentStore
from domain.agents.agent import Agent
from domain.errors import existing
from domain.ids import AgentId, OrganizationId

ID_PREFIX = "agt_"


async def existing_agent(agents: AgentStore, organization_id: OrganizationId, id_or_name: str) -> Agent:
    """The newest version. An id goes before a name. Raises NOT_FOUND `agent_not_found`."""
    agent = None
    if id_or_name.startswith(ID_PREFIX):
        agent = await agents.get(organization_id, AgentId(id_or_name))
    return existing(agent or await agents.find(organization_id, id_or_name), "agent", id_or_name)
