"""ReviewToolPolicies: what a saved policy names that is not there, with the nearest match, and what of it has no effect."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from application.tools.known_tools import KnownTools
from application.tools.policy_words import idle_words, replaced_words
from application.tools.toolset import Toolset
from domain.agents.agent import Agent
from domain.identity.api_key import Principal
from domain.identity.organization import Organization
from domain.identity.role import Role
from domain.policy.idle_rules import IdleReason, idle_statements
from domain.policy.layers import PolicyLayer, PolicyLayers
from domain.policy.replaced_rules import replaced_statements
from domain.policy.rules import ToolPolicies
from domain.policy.selection import fitting, literal_prefix

MAX_WARNINGS = 50
MAX_COMPARED = 1_000
"""Names that are looked through for the nearest."""
MAX_NEAREST = 10
"""Patterns that are told the nearest name: to look for it takes a while where there are many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewToolPoliciesCommand:
    """The agent or organization as it was saved."""

    principal: Principal
    saved: Agent | Organization


class ReviewToolPolicies:
    """An entry of `tool_policies` or `tool_allowlist` that fits no tool is kept, since the tool may come, and warned
    about; not where tools of a server that it may mean are not known yet. A rule that other rules of the same layer leave
    without effect, wholly or in a part or for some tools, is warned about. No server is asked."""

    def __init__(self, *, known_tools: KnownTools) -> None:
        self._known_tools = known_tools

    async def execute(self, command: ReviewToolPoliciesCommand) -> tuple[str, ...]:
        """One sentence for each entry, at most fifty. Another organization's tools are not looked at."""
        principal, saved = command.principal, command.saved
        principal.require(Role.ADMIN)
        of = saved.organization_id if isinstance(saved, Agent) else saved.id
        if of != principal.organization_id:
            return ()
        if isinstance(saved, Agent):
            whose, policies, allowlist = "of this agent", saved.config.tool_policies, saved.config.tool_allowlist
        else:
            whose, policies, allowlist = "of this organization", saved.tool_policies, saved.tool_allowlist
        named = [("tool_policies", pattern) for pattern, _ in policies.rules]
        named += [("tool_allowlist", entry) for entry in allowlist or ()]
        if not named:
            return ()
        if isinstance(saved, Agent):
            known = await self._known_tools.of_agent(saved.organization_id, saved.config)
        else:
            known = await self._known_tools.of_organization(saved.id)
        layer = PolicyLayer.AGENT if isinstance(saved, Agent) else PolicyLayer.ORGANIZATION
        # In a thread, since there may be a thousand rules and ten thousand tools.
        return await asyncio.to_thread(_warnings, named, whose, policies, layer, known)


def _warnings(
    named: list[tuple[str, str]], whose: str, policies: ToolPolicies, layer: PolicyLayer, known: Toolset
) -> tuple[str, ...]:
    names = KnownNames(known)
    missing = [
        f"{field}.{pattern}: no tool {whose} has that name{hint}"
        for field, pattern in named
        if (hint := names.hint_if_missing(pattern)) is not None
    ]
    return (*missing, *_without_effect(policies, layer, known, names))[:MAX_WARNINGS]


def _without_effect(policies: ToolPolicies, layer: PolicyLayer, known: Toolset, names: "KnownNames") -> Iterator[str]:
    """What the layer's rules do to each other; other layers may change tomorrow."""
    alone = PolicyLayers(agent=policies) if layer is PolicyLayer.AGENT else PolicyLayers(organization=policies)
    tools = [tool.name for tool in known.tools]
    nowhere = set()
    for statement in idle_statements(alone, policies, tools, layer):
        if statement.reason is IdleReason.NO_TOOL or names.may_grow(statement.pattern):
            continue
        if statement.reason is IdleReason.MORE_SPECIFIC:
            nowhere.add(statement.pattern)
        yield f"tool_policies.{statement.pattern}: {idle_words(statement, layer)}"
    for replaced in replaced_statements(policies, tools):
        if replaced.pattern not in nowhere:
            yield f"tool_policies.{replaced.pattern}: {replaced_words(replaced)}"


class KnownNames:
    """The names of a toolset, to hold names and globs against."""

    def __init__(self, known: Toolset) -> None:
        self._names = sorted(tool.name for tool in known.tools)
        self._unknown = tuple(f"mcp__{server.slug}__" for server in known.servers if server.unavailable is not None)
        self._looked_for = 0

    def hint_if_missing(self, pattern: str) -> str | None:
        """None if a tool has that name, or may have it once its server is listed; else the nearest name, `; did you mean …?`,
        empty where none is near."""
        if self.may_grow(pattern) or next(fitting(pattern, self._names), None) is not None:
            return None
        self._looked_for += 1
        near = get_close_matches(pattern, self._names[:MAX_COMPARED], n=1) if self._looked_for <= MAX_NEAREST else []
        return f"; did you mean {near[0]!r}?" if near else ""

    def may_grow(self, pattern: str) -> bool:
        """Whether the pattern may fit tools of a server that is not listed yet."""
        literal = literal_prefix(pattern)
        return any(literal.startswith(prefix) or prefix.startswith(literal) for prefix in self._unknown)
