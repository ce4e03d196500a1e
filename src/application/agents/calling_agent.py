"""The rules that a run takes over from the agent that started it by a tool call."""

from application.agents.ports import AgentStore
from domain.agents.agent import AgentConfig
from domain.ids import OrganizationId
from domain.policy.caller import CallerRules
from domain.policy.rules import NO_POLICIES
from domain.runs.called_by import CalledBy

_NOTHING = CallerRules(allowlist=(), policies=NO_POLICIES)


async def caller_rules(
    agents: AgentStore, organization_id: OrganizationId, called_by: CalledBy | None, called: AgentConfig
) -> CallerRules | None:
    """The current rules of the agent that called the run's agent.

    - None for a run that was not started by an agent's tool call, and for an agent that its caller
      lists in `independent_agents`.
    - A deleted caller permits nothing.
    """
    if called_by is None or called_by.agent_id is None:
        return None
    caller = await agents.get(organization_id, called_by.agent_id)
    if caller is None:
        return _NOTHING
    if called.name in caller.config.independent_agents:
        return None
    return CallerRules(allowlist=caller.config.tool_allowlist, policies=caller.config.tool_policies)
