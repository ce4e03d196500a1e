"""ExplainAgent: what becomes of each tool of an agent as it is, or as somebody is about to save it."""

import asyncio
from dataclasses import dataclass

from application.identity.ports import OrganizationStore
from application.tools.known_tools import KnownTools
from application.tools.policy_words import idle_words, replaced_words
from application.tools.review_tool_policies import KnownNames
from application.tools.tool_standing import (
    ToolStanding,
    overruled_sentences,
    restrictions,
    standing_of,
    standing_sentence,
)
from application.tools.toolset import Toolset
from domain.agents.agent import AgentConfig, AgentSettings
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.policy.idle_rules import IdleReason, IdleStatement, idle_statements
from domain.policy.layers import PolicyLayer, PolicyLayers, Source
from domain.policy.replaced_rules import replaced_statements
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.tools.capabilities import NATIVE_TYPES
from domain.tools.tool import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAgentCommand:
    """`settings` need not be saved, nor be valid: of them the tools, servers, agents, allowlist and policies count, and of
    these the ones that exist."""

    principal: Principal
    settings: AgentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedTool:
    """`sentence` says how the tool stands and who decides; `restrictions` what else holds, a sentence each."""

    tool: Tool
    standing: ToolStanding
    decided_by: Source
    sentence: str
    restrictions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyWarning:
    """Something written that has no effect: in the rule `pattern`, or in the allowlist (None)."""

    pattern: str | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedAgent:
    """Tools in the order models see them; `unavailable` are servers whose tools are not known, with the reason."""

    tools: tuple[ExplainedTool, ...]
    warnings: tuple[PolicyWarning, ...]
    unavailable: tuple[tuple[str, str], ...]


class ExplainAgent:
    """Rules: needs the role viewer; decided as calls are, with the organization's policies as they are now; nothing is saved
    and no server is asked. Warned about is what has no effect: a rule or an entry of the allowlist that fits no tool, a rule
    that more specific ones leave nothing to, words of a rule that the organization has said already, or stricter, words about
    tools that are denied, and words that a more specific rule does not repeat."""

    def __init__(self, *, known_tools: KnownTools, organizations: OrganizationStore) -> None:
        self._known_tools = known_tools
        self._organizations = organizations

    async def execute(self, command: ExplainAgentCommand) -> ExplainedAgent:
        """Raises FORBIDDEN."""
        command.principal.require(Role.VIEWER)
        organization_id, settings = command.principal.organization_id, command.settings
        known = await self._known_tools.of_agent(organization_id, _listing(settings))
        organization = await self._organizations.get(organization_id)
        # Made here and not by the catalog, which keeps toolsets for runs: each keystroke would take the place of one.
        layers = PolicyLayers(
            organization=NO_POLICIES if organization is None else organization.tool_policies,
            agent=settings.tool_policies,
            organization_allowlist=None if organization is None else organization.tool_allowlist,
            agent_allowlist=settings.tool_allowlist,
        )
        # In a thread, since agents may have ten thousand tools, and somebody is typing.
        return await asyncio.to_thread(_explain, settings, known, layers)


def _explain(settings: AgentSettings, known: Toolset, layers: PolicyLayers) -> ExplainedAgent:
    names = KnownNames(known)
    return ExplainedAgent(
        tools=tuple(_explained(tool, layers) for tool in known.tools),
        warnings=(
            *_policy_warnings(layers, settings.tool_policies, known, names),
            *_allowlist_warnings(settings, names),
        ),
        unavailable=tuple(
            (server.slug, server.unavailable) for server in known.servers if server.unavailable is not None
        ),
    )


def _listing(settings: AgentSettings) -> AgentConfig:
    """An agent that lists the same."""
    named = set(settings.tools)
    return AgentConfig(
        name="draft",
        model="draft:draft",
        tools=tuple(kind for kind in NATIVE_TYPES if kind.value in named),
        mcp_servers=tuple(dict.fromkeys(settings.mcp_servers)),
        agents=tuple(dict.fromkeys(settings.agents)),
    )


def _explained(tool: Tool, layers: PolicyLayers) -> ExplainedTool:
    policy = layers.resolve(tool.name)
    standing, decided_by = standing_of(policy, is_listed=True)
    overruled = overruled_sentences(layers.layers_for(tool.name), policy, standing)
    return ExplainedTool(
        tool=tool,
        standing=standing,
        decided_by=decided_by,
        sentence=standing_sentence(standing, decided_by, is_listed=True),
        restrictions=(*overruled, *restrictions(policy, standing)),
    )


def _policy_warnings(
    layers: PolicyLayers, policies: ToolPolicies, known: Toolset, names: KnownNames
) -> list[PolicyWarning]:
    said = []
    nowhere = set()  # rules that hold for no tool: nothing more is to be said of them
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


def _idle_words(statement: IdleStatement, names: KnownNames) -> str | None:
    if statement.reason is IdleReason.NO_TOOL:
        hint = names.hint_if_missing(statement.pattern)
        return None if hint is None else _sentence(f"Fits no tool of this agent{hint}")
    return _sentence(idle_words(statement, PolicyLayer.AGENT))


def _allowlist_warnings(settings: AgentSettings, names: KnownNames) -> list[PolicyWarning]:
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
