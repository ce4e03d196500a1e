"""ExplainTool: why a tool of an agent is allowed, requires approval, is blocked or hidden, by
layer."""

from dataclasses import dataclass
from datetime import datetime

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.identity.read_circumstances import Acting, ReadCircumstances
from application.tools.condition_words import condition_sentences
from application.tools.explained_people import ExplainedPeople
from application.tools.tool_standing import (
    ToolStanding,
    overruled_sentences,
    restrictions,
    standing_of,
    standing_sentence,
)
from application.tools.toolset_builder import ToolsetBuilder
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.agents.agent import Agent
from domain.errors import ServiceError, not_found
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.nearest import nearest
from domain.policy.allowlist import Allowlist, allows
from domain.policy.layers import PolicyLayer, Source, ToolPolicy
from domain.policy.rules import NO_POLICIES
from domain.policy.selection import Selected
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainToolCommand:
    """`name` is the model-facing name; `agent` is an id or a name. `person` is the id of who acts,
    by default the caller; `at` is when, by default now."""

    principal: Principal
    name: str
    agent: str
    person: ApiKeyId | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerExplanation:
    """The decision of one layer. `in_allowlist` is None without an allowlist. `rules` has several
    entries if globs tie."""

    layer: PolicyLayer
    in_allowlist: bool | None
    rules: Selected


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExplanation:
    """`reasons` are sentences; `policy` is the effective policy with the source of each field;
    `decided_by` is the source of the outcome; `repeatable` allows sending a call again whose
    outcome is unknown."""

    tool: Tool
    agent: Agent
    standing: ToolStanding
    decided_by: Source
    layers: tuple[LayerExplanation, ...]
    policy: ToolPolicy
    repeatable: bool
    reasons: tuple[str, ...]


class ExplainTool:
    """Rules:
    - Requires `viewer`.
    - Evaluates policy as calls do, for one person at one time. `ExplainedPeople` says who asks for
      whom.
    - A tool of the organization that the agent does not list is hidden, and so is each for who does
      not see the agent.
    - No server is contacted.

    Raises: FORBIDDEN `role_insufficient`, NOT_FOUND `agent_not_found`, `tool_not_found` (with the
    nearest name), `user_not_found`, `api_key_not_found`.
    """

    def __init__(
        self,
        *,
        catalog: ToolsetBuilder,
        unrestricted_toolsets: UnrestrictedToolsets,
        agents: AgentStore,
        organizations: OrganizationStore,
        circumstances: ReadCircumstances,
        people: ExplainedPeople,
    ) -> None:
        self._catalog = catalog
        self._unrestricted_toolsets = unrestricted_toolsets
        self._agents = agents
        self._organizations = organizations
        self._circumstances = circumstances
        self._people = people

    async def execute(self, command: ExplainToolCommand) -> ToolExplanation:
        command.principal.require(Role.VIEWER)
        organization_id = command.principal.organization_id
        agent = await existing_agent(self._agents, command.principal, command.agent)
        actor = await self._people.acting(command.principal, command.person)
        tool, is_listed = await self._tool(command.principal, agent, command.name)
        acting = Acting(actor=actor, at=command.at)
        toolset = await self._catalog.listed_toolset(agent.config, organization_id, acting=acting)
        policy = toolset.policy_of(tool.name)
        standing, decided_by = standing_of(policy, is_listed=is_listed)
        absence = await self._people.absence(command.principal, actor, agent.team)
        if absence is not None:
            standing, decided_by = ToolStanding.HIDDEN, Source(layer=PolicyLayer.AGENT)
        organization = await self._organizations.get(organization_id)
        allowlists: dict[PolicyLayer, Allowlist] = {
            PolicyLayer.ORGANIZATION: None if organization is None else organization.tool_allowlist,
            PolicyLayer.AGENT: agent.config.tool_allowlist,
        }
        rules = (
            (PolicyLayer.ORGANIZATION, NO_POLICIES if organization is None else organization.tool_policies),
            (PolicyLayer.AGENT, agent.config.tool_policies),
        )
        conditions: tuple[str, ...] = ()
        if toolset.is_conditional:
            conditions = condition_sentences(tool.name, rules, await self._circumstances.of(organization_id, acting))
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
                absence or standing_sentence(standing, decided_by, is_listed=is_listed),
                *conditions,
                *overruled_sentences(toolset.policies.layers_for(tool.name), policy, standing),
                *restrictions(policy, standing),
            ),
        )

    async def _tool(self, principal: Principal, agent: Agent, name: str) -> tuple[Tool, bool]:
        organization_id = principal.organization_id
        own = await self._unrestricted_toolsets.of_agent(organization_id, agent.config)
        tool = own.find(name)
        if tool is not None:
            return tool, True
        everything = await self._unrestricted_toolsets.of_organization(organization_id, teams=principal.visible_teams)
        tool = everything.find(name)
        if tool is not None:
            return tool, False
        near = nearest(name, (known.name for known in (*own.tools, *everything.tools)))
        hint = f" Did you mean {near!r}?" if near is not None else ""
        missing = not_found("tool", name)
        raise ServiceError(missing.code, missing.kind, missing.detail + hint)
