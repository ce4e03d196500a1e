"""ExplainAgent: the policy outcome of each tool of an agent, saved or draft."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from application.identity.ports import OrganizationStore
from application.identity.read_circumstances import Acting, ReadCircumstances
from application.tools.condition_words import condition_sentences
from application.tools.explained_people import ExplainedPeople
from application.tools.policy_words import idle_words, replaced_words
from application.tools.review_tool_policies import ToolNameIndex
from application.tools.tool_standing import (
    ToolStanding,
    overruled_sentences,
    restrictions,
    standing_of,
    standing_sentence,
)
from application.tools.toolset import Toolset
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.agents.agent import AgentConfig, AgentSettings
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ApiKeyId
from domain.policy.allowlist import Allowlist
from domain.policy.condition import Circumstances
from domain.policy.idle_rules import IdleReason, IdleStatement, idle_statements
from domain.policy.layers import PolicyLayer, PolicyLayers, Source
from domain.policy.replaced_rules import replaced_statements
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.tools.capabilities import NATIVE_TYPES
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAgentCommand:
    """`settings` may be unsaved and invalid. Only tools, servers, agents, allowlist and policies
    are used, as far as they exist. `person` is the id of who acts, by default the caller; `at` is
    when, by default now."""

    principal: Principal
    settings: AgentSettings
    person: ApiKeyId | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTool:
    """`sentence` names the outcome and its source; `restrictions` are further limits, one sentence
    each."""

    tool: Tool
    standing: ToolStanding
    decided_by: Source
    sentence: str
    restrictions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWarning:
    """A rule `pattern`, or an allowlist entry (None), without effect."""

    pattern: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedAgent:
    """Tools in the order of the model's list; `unavailable` are servers with unknown tools, and the
    reasons."""

    tools: tuple[ExplainedTool, ...]
    warnings: tuple[PolicyWarning, ...]
    unavailable: tuple[tuple[str, str], ...]


class ExplainAgent:
    """Rules:
    - Requires `viewer`.
    - Evaluates policy as calls do for one person at one time, with the current policies of the
      organization. Nothing is saved, and no server is contacted. `ExplainedPeople` says who asks
      for whom.
    - All is hidden for who does not see the agent.
    - Warns about rules and entries without effect: no matching tool; overridden by more specific
      rules; already decided as strictly by the organization; about denied tools; fields that a more
      specific rule does not repeat. Only rules without conditions are looked at for that.

    Raises: FORBIDDEN, NOT_FOUND `user_not_found`, `api_key_not_found`.
    """

    def __init__(
        self,
        *,
        unrestricted_toolsets: UnrestrictedToolsets,
        organizations: OrganizationStore,
        circumstances: ReadCircumstances,
        people: ExplainedPeople,
    ) -> None:
        self._unrestricted_toolsets = unrestricted_toolsets
        self._organizations = organizations
        self._circumstances = circumstances
        self._people = people

    async def execute(self, command: ExplainAgentCommand) -> ExplainedAgent:
        command.principal.require(Role.VIEWER)
        organization_id, settings = command.principal.organization_id, command.settings
        actor = await self._people.acting(command.principal, command.person)
        listing = _listing(settings, command.principal)
        known = await self._unrestricted_toolsets.of_agent(organization_id, listing)
        organization = await self._organizations.get(organization_id)
        said = _Said(
            organization=NO_POLICIES if organization is None else organization.tool_policies,
            agent=settings.tool_policies,
            organization_allowlist=None if organization is None else organization.tool_allowlist,
            agent_allowlist=settings.tool_allowlist,
            now=await self._circumstances.of(organization_id, Acting(actor=actor, at=command.at)),
            absence=await self._people.absence(command.principal, actor, listing.team),
        )
        # In a thread: an agent may have ten thousand tools, and the editor waits.
        return await asyncio.to_thread(_explain, settings, known, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The policies of both layers, who acts when, and why the agent is not there for them."""

    organization: ToolPolicies
    agent: ToolPolicies
    organization_allowlist: Allowlist
    agent_allowlist: Allowlist
    now: Circumstances
    absence: str | None

    def layers(self, chosen: Callable[[ToolPolicies], ToolPolicies]) -> PolicyLayers:
        """Layers of the chosen rules. Built here, not by the toolset builder: drafts would displace
        the cached toolsets of runs."""
        return PolicyLayers(
            organization=chosen(self.organization),
            agent=chosen(self.agent),
            organization_allowlist=self.organization_allowlist,
            agent_allowlist=self.agent_allowlist,
        )

    def conditions(self, name: str) -> tuple[str, ...]:
        rules = ((PolicyLayer.ORGANIZATION, self.organization), (PolicyLayer.AGENT, self.agent))
        return condition_sentences(name, (each for each in rules if each[1].is_conditional), self.now)


def _explain(settings: AgentSettings, known: Toolset, said: _Said) -> ExplainedAgent:
    names = ToolNameIndex(known)
    layers = said.layers(lambda rules: rules.under(said.now))
    unconditional = said.layers(ToolPolicies.unconditional)
    return ExplainedAgent(
        tools=tuple(_explained(tool, layers, said) for tool in known.tools),
        warnings=(
            *_policy_warnings(unconditional, settings.tool_policies.unconditional(), known, names),
            *_allowlist_warnings(settings, names),
        ),
        unavailable=tuple(
            (server.slug, server.unavailable) for server in known.servers if server.unavailable is not None
        ),
    )


def _listing(settings: AgentSettings, principal: Principal) -> AgentConfig:
    """An agent configuration with the same lists, of a team that the caller sees."""
    named = set(settings.tools)
    return AgentConfig(
        name="draft",
        model="draft:draft",
        tools=tuple(kind for kind in NATIVE_TYPES if kind.value in named),
        mcp_servers=tuple(dict.fromkeys(settings.mcp_servers)),
        agents=tuple(dict.fromkeys(settings.agents)),
        team=settings.team if principal.sees(settings.team) else None,
    )


def _explained(tool: Tool, layers: PolicyLayers, said: _Said) -> ExplainedTool:
    policy = layers.resolve(tool.name)
    standing, decided_by = standing_of(policy, is_listed=True)
    if said.absence is not None:
        standing, decided_by = ToolStanding.HIDDEN, Source(layer=PolicyLayer.AGENT)
    overruled = overruled_sentences(layers.layers_for(tool.name), policy, standing)
    return ExplainedTool(
        tool=tool,
        standing=standing,
        decided_by=decided_by,
        sentence=said.absence or standing_sentence(standing, decided_by, is_listed=True),
        restrictions=(*said.conditions(tool.name), *overruled, *restrictions(policy, standing)),
    )


def _policy_warnings(
    layers: PolicyLayers, policies: ToolPolicies, known: Toolset, names: ToolNameIndex
) -> list[PolicyWarning]:
    said = []
    nowhere = set()  # rules without a tool: further warnings about them are left out
    for statement in idle_statements(layers, policies, [tool.name for tool in known.tools]):
        if statement.reason is IdleReason.MORE_SPECIFIC:
            nowhere.add(statement.pattern)
        message = _idle_words(statement, names)
        if message is not None:
            said.append(PolicyWarning(pattern=statement.pattern, message=message))
    said += [
        PolicyWarning(pattern=statement.pattern, message=_sentence(replaced_words(statement)))
        for statement in replaced_statements(policies, (tool.name for tool in known.tools))
        if statement.pattern not in nowhere
    ]
    return said


def _idle_words(statement: IdleStatement, names: ToolNameIndex) -> str | None:
    if statement.reason is IdleReason.NO_TOOL:
        hint = names.hint_if_missing(statement.pattern)
        return None if hint is None else _sentence(f"Fits no tool of this agent{hint}")
    return _sentence(idle_words(statement, PolicyLayer.AGENT))


def _allowlist_warnings(settings: AgentSettings, names: ToolNameIndex) -> list[PolicyWarning]:
    return [
        PolicyWarning(
            pattern=None, message=_sentence(f"The entry {entry} of the allowlist fits no tool of this agent{hint}")
        )
        for entry in settings.tool_allowlist or ()
        if (hint := names.hint_if_missing(entry)) is not None
    ]


def _sentence(words: str) -> str:
    words = words[0].upper() + words[1:]
    return words if words.endswith("?") else f"{words}."
