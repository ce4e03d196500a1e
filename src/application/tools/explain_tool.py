"""ExplainTool: why an agent's tool is allowed, asked for, blocked or hidden, layer by layer."""

from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from application.agents.agent_lookup import existing_agent
from application.agents.ports import AgentStore
from application.identity.ports import OrganizationStore
from application.tools.known_tools import KnownTools
from application.tools.tool_catalog import ToolCatalog
from domain.agents.agent import Agent
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import OrganizationId
from domain.policy.allowlist import Allowlist, allows
from domain.policy.layers import PolicyLayer, Source, ToolPolicy
from domain.policy.rules import OnBlock, Verdict
from domain.policy.selection import Selected
from domain.tools.tool import Tool


class ToolStanding(StrEnum):
    """What becomes of calls of a tool, their arguments aside. `hidden`: they are answered as if there were no such tool."""

    ALLOWED = "allowed"
    ASKED_FOR = "asked_for"
    BLOCKED = "blocked"
    HIDDEN = "hidden"


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
        standing, decided_by = _standing(policy, is_listed=is_listed)
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
            for layer, rules in toolset.policies.said(tool.name)
        )
        return ToolExplanation(
            tool=tool,
            agent=agent,
            standing=standing,
            decided_by=decided_by,
            layers=layers,
            policy=policy,
            repeatable=tool.repeatable if policy.idempotent is None else policy.idempotent,
            reasons=(_sentence(standing, decided_by, is_listed=is_listed), *_restrictions(policy, standing)),
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


_STANDINGS = {
    Verdict.ALLOW: ToolStanding.ALLOWED,
    Verdict.REQUIRE_APPROVAL: ToolStanding.ASKED_FOR,
    Verdict.DENY: ToolStanding.BLOCKED,
}


def _standing(policy: ToolPolicy, *, is_listed: bool) -> tuple[ToolStanding, Source]:
    if not is_listed:
        return ToolStanding.HIDDEN, Source(layer=PolicyLayer.AGENT)
    if policy.hidden_by is not None:
        return ToolStanding.HIDDEN, Source(layer=policy.hidden_by)
    return _STANDINGS[policy.decision], policy.source_of("decision")


def _sentence(standing: ToolStanding, by: Source, *, is_listed: bool) -> str:
    if not is_listed:
        return "Hidden: the agent lists neither the tool nor its MCP server."
    if standing is ToolStanding.HIDDEN:
        return f"Hidden: the {by.layer.value}'s tool_allowlist does not have it."
    said = {
        ToolStanding.ALLOWED: "Allowed",
        ToolStanding.ASKED_FOR: "Asked for: each call needs the approval of a person",
        ToolStanding.BLOCKED: "Blocked: the model is not shown it, and its calls are refused",
    }[standing]
    return f"{said}, {source_words(by)}."


def source_words(source: Source) -> str:
    """`by the organization's rule mcp__git__*`"""
    if source.layer is PolicyLayer.BUILT_IN:
        return "by default"
    rule = "" if source.pattern is None else f"'s rule {source.pattern}"
    return f"by the {source.layer.value}{rule}"


def _restrictions(policy: ToolPolicy, standing: ToolStanding) -> list[str]:
    """What else holds, a sentence each. Of a hidden tool nothing does."""
    if standing is ToolStanding.HIDDEN:
        return []
    said: list[tuple[str, str]] = []
    if policy.denied_params:
        said.append(("denied_params", f"The parameters {_names(policy.denied_params)} are denied"))
    if policy.allowed_params is not None:
        allowed = (
            f"Only the parameters {_names(policy.allowed_params)} are" if policy.allowed_params else "No parameter is"
        )
        said.append(("allowed_params", f"{allowed} allowed"))
    if policy.constraints:
        said.append(("arguments_schema", "Arguments are held against a JSON Schema"))
    if policy.max_calls is not None:
        said.append(("max_calls", f"At most {policy.max_calls} calls in a run"))
    if policy.max_results is not None:
        said.append(("max_results", f"At most {policy.max_results} results of a call"))
    if policy.max_result_bytes is not None:
        said.append(("max_result_bytes", f"At most {policy.max_result_bytes} bytes of a result's text"))
    if policy.timeout_s is not None:
        said.append(("timeout_s", f"At most {policy.timeout_s:g} seconds for a call"))
    if policy.on_block is OnBlock.HALT:
        said.append(("on_block", "A blocked call ends the run"))
    return [f"{what}, {' and '.join(map(source_words, policy.sources[name]))}." for name, what in said]


def _names(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
