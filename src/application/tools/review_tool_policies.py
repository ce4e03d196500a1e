"""ReviewToolPolicies: warns about names in a saved policy that match no tool, and about rules
without effect."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from application.identity.ports import IdentityStore, Memberships, OrganizationStore, UserStore
from application.tools.policy_words import idle_words, replaced_words
from application.tools.ports import KnownUsers
from application.tools.toolset import Toolset
from application.tools.unrestricted_toolsets import UnrestrictedToolsets
from domain.agents.agent import Agent
from domain.identity.api_key import Principal, person_of
from domain.identity.organization import Organization
from domain.identity.permission import Permission
from domain.ids import ApiKeyId, OrganizationId, UserId
from domain.nearest import nearest
from domain.policy.idle_rules import IdleReason, idle_statements
from domain.policy.layers import PolicyLayer, PolicyLayers
from domain.policy.open_rules import open_permissions
from domain.policy.replaced_rules import replaced_statements
from domain.policy.rules import NO_POLICIES, ToolPolicies
from domain.policy.selection import fitting, literal_prefix

MAX_WARNINGS = 50
MAX_COMPARED = 1_000
"""Limit of names compared to find the nearest one."""
MAX_REVIEWED = 2_000_000
"""Rules times tools whose effects on each other are looked at: a microsecond each."""
MAX_NEAREST = 10
"""Limit of patterns with a nearest name: finding it is slow with many tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewToolPoliciesCommand:
    principal: Principal
    saved: Agent | Organization


class ReviewToolPolicies:
    """Rules:
    - An entry of `tool_policies` or `tool_allowlist` without a matching tool stays, since the tool
      may be added later; it is warned about unless it may match tools of an unlisted server.
    - A rule that other rules of its layer leave without effect, entirely or partly, is warned
      about.
    - Groups and people that do not exist are warned about: such approvers decide nothing, and no
      condition holds for them.
    - So are users to whom an organization gives a budget or limits, and who do not exist; after all
      others.
    - A rule that allows under a condition is warned about if no rule without a condition denies its
      tools to others or requires approval, in the layer or in the organization's: it restricts no
      person.
    - Only rules without conditions are compared with each other.
    - No server is contacted.
    """

    def __init__(
        self,
        *,
        unrestricted_toolsets: UnrestrictedToolsets,
        memberships: Memberships,
        identities: IdentityStore,
        users: UserStore,
        organizations: OrganizationStore,
        known_users: KnownUsers,
    ) -> None:
        self._unrestricted_toolsets = unrestricted_toolsets
        self._memberships = memberships
        self._identities = identities
        self._users = users
        self._organizations = organizations
        self._known_users = known_users

    async def execute(self, command: ReviewToolPoliciesCommand) -> tuple[str, ...]:
        """One sentence per entry, at most fifty; none for another organization."""
        principal, saved = command.principal, command.saved
        principal.require(Permission.AGENTS_MANAGE if isinstance(saved, Agent) else Permission.ORGANIZATION_MANAGE)
        of = saved.organization_id if isinstance(saved, Agent) else saved.id
        if of != principal.organization_id:
            return ()
        if isinstance(saved, Agent):
            whose, policies, allowlist = "of this agent", saved.config.tool_policies, saved.config.tool_allowlist
        else:
            whose, policies, allowlist = "of this organization", saved.tool_policies, saved.tool_allowlist
        named = [("tool_policies", pattern) for pattern, _ in policies.rules]
        named += [("tool_allowlist", entry) for entry in allowlist or ()]
        strangers = () if isinstance(saved, Agent) else await self._of_limits(saved)
        if not named:
            return strangers[:MAX_WARNINGS]
        if isinstance(saved, Agent):
            known = await self._unrestricted_toolsets.of_agent(saved.organization_id, saved.config)
        else:
            known = await self._unrestricted_toolsets.of_organization(saved.id)
        layer = PolicyLayer.AGENT if isinstance(saved, Agent) else PolicyLayer.ORGANIZATION
        # In a thread: there may be a thousand rules and ten thousand tools.
        warnings = await asyncio.to_thread(_warnings, named, whose, policies, layer, known)
        said = [*await self._of_people(principal.organization_id, policies)]
        if policies.is_conditional:
            said += await self._of_open_rules(saved, policies, layer, known)
        return (*said, *warnings, *strangers)[:MAX_WARNINGS]

    async def _of_limits(self, saved: Organization) -> tuple[str, ...]:
        named = [("user_daily_budgets_usd", UserId(each)) for each in saved.user_daily_budgets_usd]
        named += [("limits_of_users", UserId(each)) for each in saved.limits_of_users]
        strangers = set(await self._known_users.strangers(saved.id, [user for _, user in named]))
        return tuple(f"{field}: no user has the id {user}" for field, user in named if user in strangers)

    async def _of_open_rules(
        self, saved: Agent | Organization, policies: ToolPolicies, layer: PolicyLayer, known: Toolset
    ) -> list[str]:
        organization = await self._organizations.get(saved.organization_id) if isinstance(saved, Agent) else saved
        above = NO_POLICIES if organization is None else organization.tool_policies.unconditional()
        names = [tool.name for tool in known.tools]
        found = await asyncio.to_thread(
            lambda: [*open_permissions(PolicyLayers(organization=above), policies, names, layer)]
        )
        return [
            f"tool_policies.{pattern}: when: others may call these tools, too; deny them by a rule with a glob"
            for pattern in found
        ]

    async def _of_people(self, organization_id: OrganizationId, policies: ToolPolicies) -> list[str]:
        named = [
            (pattern, field, each)
            for pattern, rule in policies.rules
            for field, each in (("approvers", rule.approvers), ("when", rule.when))
            if each is not None
        ]
        if not named:
            return []
        known = await self._memberships.group_names(organization_id)
        said = [
            f"tool_policies.{pattern}: {field}: no group has the name {group!r}"
            for pattern, field, each in named
            for group in each.groups
            if group not in known
        ]
        people = [(pattern, field, person) for pattern, field, each in named for person in each.people]
        for pattern, field, person in people[: MAX_WARNINGS - len(said)]:
            if not await self._exists(organization_id, person):
                said.append(f"tool_policies.{pattern}: {field}: no user or API key has the id {person}")
        return said

    async def _exists(self, organization_id: OrganizationId, person: str) -> bool:
        user_id = person_of(person)
        if user_id is not None:
            return await self._users.get(organization_id, user_id) is not None
        return await self._identities.key(organization_id, ApiKeyId(person)) is not None


def _warnings(
    named: list[tuple[str, str]], whose: str, policies: ToolPolicies, layer: PolicyLayer, known: Toolset
) -> tuple[str, ...]:
    names = ToolNameIndex(known)
    missing = [
        f"{field}.{pattern}: no tool {whose} has that name{hint}"
        for field, pattern in named
        if (hint := names.hint_if_missing(pattern)) is not None
    ]
    return (*missing, *_without_effect(policies, layer, known, names))[:MAX_WARNINGS]


def _without_effect(
    policies: ToolPolicies, layer: PolicyLayer, known: Toolset, names: "ToolNameIndex"
) -> Iterator[str]:
    """Effects of the layer's rules on each other; other layers may change later."""
    if len(policies.rules) * len(known.tools) > MAX_REVIEWED:
        yield "tool_policies: rules without effect are not looked for among so many rules and tools"
        return
    policies = policies.unconditional()
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


class ToolNameIndex:
    """Tool names of a toolset, matched against names and globs."""

    def __init__(self, known: Toolset) -> None:
        self._names = sorted(tool.name for tool in known.tools)
        self._unknown = tuple(f"mcp__{server.slug}__" for server in known.servers if server.unavailable is not None)
        self._looked_for = 0

    def hint_if_missing(self, pattern: str) -> str | None:
        """None if a tool matches, or may match once its server is listed; else `; did you mean …?`,
        or empty without a near name."""
        if self.may_grow(pattern) or next(fitting(pattern, self._names), None) is not None:
            return None
        self._looked_for += 1
        near = nearest(pattern, self._names[:MAX_COMPARED]) if self._looked_for <= MAX_NEAREST else None
        return f"; did you mean {near!r}?" if near is not None else ""

    def may_grow(self, pattern: str) -> bool:
        """Whether the pattern may match tools of an unlisted server."""
        literal = literal_prefix(pattern)
        return any(literal.startswith(prefix) or prefix.startswith(literal) for prefix in self._unknown)
