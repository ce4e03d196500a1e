"""Agents as tools, `agent__NAME`: what clients of the gateway are shown of those that an agent lists."""

from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.system.pages import MAX_PAGE_SIZE, PageRequest
from domain.agents.agent import Agent, AgentConfig
from domain.identity.organization import Organization
from domain.ids import OrganizationId
from domain.json_value import JsonObject
from domain.runs.limits import Limits
from domain.tools.capabilities import ToolType
from domain.tools.names import agent_tool_name
from domain.tools.tool import AgentBinding, Tool

QUEUED_S = 60.0
"""How much longer than a run may be active its answer is waited for: runs queue for a worker."""
MAX_INPUT_CHARACTERS = 500_000
# Providers refuse alternatives at the top of a tool's schema, so what is given beside what is looked at with the call.
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


class AgentTools:
    """Rules: an agent that is disabled or gone is no tool; nothing listed is nothing; the answer is waited for as long as limits of
    agent and organization let a run be active, and a minute more."""

    def __init__(self, *, agents: AgentStore, organizations: OrganizationStore) -> None:
        self._agents = agents
        self._organizations = organizations

    async def of(self, organization_id: OrganizationId, config: AgentConfig) -> tuple[Tool, ...]:
        """The agents that `config` lists, by name."""
        if not config.agents:
            return ()
        organization = await self._organizations.get(organization_id)
        found = [await self._agents.find(organization_id, name) for name in sorted(config.agents)]
        return tuple(_tool(agent, organization) for agent in found if agent is not None and agent.config.enabled)

    async def of_organization(self, organization_id: OrganizationId) -> tuple[Tool, ...]:
        """All agents of the organization that may be started, by name."""
        organization = await self._organizations.get(organization_id)
        found: list[Agent] = []
        request = PageRequest(limit=MAX_PAGE_SIZE)
        while True:
            page = await self._agents.page(organization_id, request)
            found += page.items
            if page.next_cursor is None:
                break
            request = PageRequest(limit=MAX_PAGE_SIZE, cursor=page.next_cursor)
        enabled = sorted((agent for agent in found if agent.config.enabled), key=lambda agent: agent.config.name)
        return tuple(_tool(agent, organization) for agent in enabled)


def _tool(agent: Agent, organization: Organization | None) -> Tool:
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
