"""Finds an agent by its id or name."""

from application.agents.ports import AgentStore
from domain.agents.agent import Agent
from domain.errors import not_found
from domain.identity.api_key import Principal
from domain.ids import AgentId, OrganizationId
from domain.teams import may_use

ID_PREFIX = "agt_"


async def existing_agent(agents: AgentStore, principal: Principal, id_or_name: str) -> Agent:
    """The newest version. An id goes before a name. Raises NOT_FOUND `agent_not_found`, also for an
    agent of a team that the caller does not see."""
    return principal.found(await stored_agent(agents, principal.organization_id, id_or_name), "agent", id_or_name)


async def agent_of_workflow(
    agents: AgentStore, organization_id: OrganizationId, id_or_name: str, *, team: str | None
) -> Agent:
    """As `existing_agent`, for a workflow of `team`, which uses only what belongs to this team or
    to the organization."""
    agent = await stored_agent(agents, organization_id, id_or_name)
    if agent is None or not may_use(team, agent.team):
        raise not_found("agent", id_or_name)
    return agent


async def stored_agent(agents: AgentStore, organization_id: OrganizationId, id_or_name: str) -> Agent | None:
    """Of any team."""
    agent = None
    if id_or_name.startswith(ID_PREFIX):
        agent = await agents.get(organization_id, AgentId(id_or_name))
    return agent or await agents.find(organization_id, id_or_name)
