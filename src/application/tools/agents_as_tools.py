"""Agents as tools (`agent__NAME`) for clients of the gateway, and for agents of workflows that they
are wired to."""

from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.agents.agent import Agent, AgentConfig
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.runs.limits import Limits
from domain.teams import Teams, may_use
from domain.tools.capabilities import ToolType
from domain.tools.names import agent_tool_name
from domain.tools.tool import AgentBinding, Tool

QUEUED_S = 60.0
"""Extra time to wait for an answer beyond the time limit of the run, because runs wait for a
worker."""
MAX_INPUT_CHARACTERS = 500_000
# Providers reject alternatives at the top level of a schema: the call checks that one of the two is
# given.
PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {
        "input": {
            "type": "string",
            "description": "What the agent is to do, in words, with all that it has to know. Needed unless run_id is given.",
            "minLength": 1,
            "maxLength": MAX_INPUT_CHARACTERS,
        },
        "run_id": {
            "type": "string",
            "description": "Instead of input: the run_id that an earlier call named, to have the answer of that run.",
            "pattern": "^run_[A-Za-z0-9_-]{1,100}$",
        },
    },
    "additionalProperties": False,
}


class AgentsAsTools:
    """Rules:
    - Disabled and deleted agents are not tools. An agent of a team is a tool for agents of this
      team only.
    - The wait for an answer is the time limit of the run (agent and organization) plus a minute.
    """

    def __init__(self, *, agents: AgentStore, organizations: OrganizationStore) -> None:
        self._agents = agents
        self._organizations = organizations

    async def of(self, organization_id: OrganizationId, config: AgentConfig) -> tuple[Tool, ...]:
        """The agents listed in `config`, ordered by name."""
        if not config.agents:
            return ()
        organization = await self._organizations.get(organization_id)
        found = [await self._agents.find(organization_id, name) for name in sorted(config.agents)]
        return tuple(
            agent_tool(agent, organization)
            for agent in found
            if agent is not None and agent.config.enabled and may_use(config.team, agent.team)
        )

    async def of_organization(self, organization_id: OrganizationId, *, teams: Teams = None) -> tuple[Tool, ...]:
        """All enabled agents of the organization, ordered by name; of those that teams own, those
        of `teams`."""
        organization = await self._organizations.get(organization_id)
        found: list[Agent] = []
        request = PageRequest(limit=MAX_PAGE_SIZE, teams=teams)
        while True:
            page = await self._agents.page(organization_id, request)
            found += page.items
            if page.next_cursor is None:
                break
            request = request.next(page.next_cursor)
        enabled = sorted((agent for agent in found if agent.config.enabled), key=lambda agent: agent.config.name)
        return tuple(agent_tool(agent, organization) for agent in enabled)


def agent_tool(agent: Agent, organization: Organization | None) -> Tool:
    """The agent as a tool under the present limits of both."""
    config = agent.config
    limits = config.limits if organization is None else config.limits.narrowed_by(organization.limits)
    said = f"Starts the agent {config.name!r} and gives its answer."
    return Tool(
        name=agent_tool_name(config.name),
        type=ToolType.AGENT,
        description=f"{said} {config.description}" if config.description else said,
        parameters=PARAMETERS,
        agent=AgentBinding(agent_id=agent.id, name=config.name, timeout_s=Limits.of(limits).timeout_s + QUEUED_S),
    )
