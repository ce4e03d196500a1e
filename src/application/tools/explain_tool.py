"""ExplainTool: why an agent's tool is allowed, asked for, blocked or hidden, layer by layer."""

from dataclasses import dataclass
from difflib import get_close_matches

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.tools.known_tools import KnownTools
from application.tools.tool_catalog import ToolCatalog
from application.tools.tool_standing import (
    ToolStanding,
    overruled_sentences,
    restrictions,
    standing_of,
    standing_sentence,
)
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.policy.allowlist import Allowlist, allows
from domain.policy.layers import PolicyLayer, Source, ToolPolicy
from domain.policy.selection import Selected
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainToolCommand:
    """`name` is model-facing, `agent` an id or a name."""

    principal: Principal
    name: str
    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerExplanation:
    """What one layer says of the tool: whether its allowlist has it (None: it has no allowlist), and its rules that hold:
    none, one, or several whose globs tie."""

    layer: PolicyLayer
    in_allowlist: bool | None
    rules: Selected


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExplanation:
    """`reasons` are sentences; `policy` is what holds in the end, with the source of each of its fields; `decided_by` is
    where the standing comes from; `repeatable` whether a call may be sent again when its outcome is lost."""

    tool: Tool
    agent: Agent
    standing: ToolStanding
    decided_by: Source
    layers: tuple[LayerExplanation, ...]
    policy: ToolPolicy
    repeatable: bool
    reasons: tuple[str, ...]


class ExplainTool:
    """Rules: needs the role viewer; explains by the same decision as calls are made by; a tool that the organization has and
    the agent does not list is hidden; no server is asked."""

    def __init__(
        self, *, catalog: ToolCatalog, known_tools: KnownTools, agents: AgentStore, organizations: OrganizationStore
    ) -> None:
        self._catalog = catalog
        self._known_tools = known_tools
        self._agents = agents
        self._organizations = organizations

    async def execute(self, command: ExplainToolCommand) -> ToolExplanation:
        """Raises NOT_FOUND `agent_not_found`, `tool_not_found` with the nearest name."""
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        agent = await existing_agent(self._agents, organization_id, command.agent)
        tool, is_listed = await self._tool(organization_id, agent, command.name)
        toolset = await self._catalog.listed_toolset(agent.config, organization_id)
        policy = toolset.policy_of(tool.name)
        standing, decided_by = standing_of(policy, is_listed=is_listed)
        organization = await self._organizations.get(organization_id)
        allowlists: dict[PolicyLayer, Allowlist] = {
            PolicyLayer.ORGANIZATION: None if organization is None else organization.tool_allowlist,
            PolicyLayer.AGENT: agent.config.tool_allowlist,
        }
        layers = tuple(
            LayerExplanation(
                layer=layer,
                in_allowlist=None if allowlists[layer] is None else allows(allowlists[layer], tool.name),
                rules=rules,
            )
            for layer, rules in toolset.policies.layers_for(tool.name)
        )
        return ToolExplanation(
            tool=tool,
            agent=agent,
            standing=standing,
            decided_by=decided_by,
            layers=layers,
            policy=policy,
            repeatable=tool.repeatable if policy.idempotent is None else policy.idempotent,
            reasons=(
                standing_sentence(standing, decided_by, is_listed=is_listed),
                *overruled_sentences(toolset.policies.layers_for(tool.name), policy, standing),
                *restrictions(policy, standing),
            ),
        )

    async def _tool(self, organization_id: OrganizationId, agent: Agent, name: str) -> tuple[Tool, bool]:
        """The tool, and whether the agent lists it."""
        own = await self._known_tools.of_agent(organization_id, agent.config)
        tool = own.find(name)
        if tool is not None:
            return tool, True
        everything = await self._known_tools.of_organization(organization_id)
        tool = everything.find(name)
        if tool is not None:
            return tool, False
        near = get_close_matches(name, [known.name for known in (*own.tools, *everything.tools)], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ServiceError("tool_not_found", ErrorKind.NOT_FOUND, f"There is no tool {name!r}.{hint}")
