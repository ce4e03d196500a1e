"""Tools as JSON."""

from collections.abc import Mapping
from typing import TypedDict, cast

from application.tools.explain_tool import ToolExplanation
from application.tools.list_tools import ToolListing
from domain.policy.layers import Source, ToolPolicy
from domain.policy.rule_json import rule_to_json
from domain.threads.message_json import timestamp
from interfaces.http.tool_policy_views import ToolRuleView


class ToolView(TypedDict):
    """A tool: `name` is what models call it, `server` the slug of its MCP server, `health` where that stands, `available`
    whether a call would be tried now; its definition is as of `as_of`, `age_s` seconds ago."""

    name: str
    type: str
    description: str
    parameters: Mapping[str, object]
    server: str | None
    health: str
    available: bool
    as_of: str | None
    age_s: float | None


class ToolsView(TypedDict):
    """Tools; `next_cursor` is null on the last page."""

    data: list[ToolView]
    next_cursor: str | None


def tool_view(listing: ToolListing) -> ToolView:
    """A tool as JSON."""
    return {
        "name": listing.tool.name,
        "type": listing.tool.type.value,
        "description": listing.tool.description,
        "parameters": listing.tool.parameters,
        "server": listing.server,
        "health": listing.health,
        "available": listing.available,
        "as_of": None if listing.as_of is None else timestamp(listing.as_of),
        "age_s": listing.age_s,
    }


class RuleSourceView(TypedDict):
    """Where something is said: `built-in`, `organization`, `agent` or `run`, and the pattern of the rule there."""

    layer: str
    pattern: str | None


class LayerView(TypedDict):
    """What one layer says; `in_allowlist` is null where it has no allowlist, `rules` are those that hold, by pattern."""

    layer: str
    in_allowlist: bool | None
    rules: dict[str, ToolRuleView]


class EffectiveView(TypedDict):
    """What holds in the end; `sources` says of each field that a rule has set where it comes from."""

    decision: str
    on_block: str
    allowed_params: list[str] | None
    denied_params: list[str]
    arguments_schemas: list[Mapping[str, object]]
    max_results: int | None
    max_calls: int | None
    max_result_bytes: int | None
    on_unknown_outcome: str
    timeout_s: float | None
    approval_ttl_s: float
    allow_self_approval: bool
    repeatable: bool
    sources: dict[str, list[RuleSourceView]]


class ExplanationView(TypedDict):
    """`standing` is `allowed`, `asked_for`, `blocked` or `hidden`, `reasons` says why, in sentences."""

    name: str
    type: str
    server: str | None
    agent_id: str
    agent: str
    agent_version: int
    standing: str
    decided_by: RuleSourceView
    reasons: list[str]
    layers: list[LayerView]
    effective: EffectiveView


def explanation_view(explained: ToolExplanation) -> ExplanationView:
    """An explanation as JSON."""
    return {
        "name": explained.tool.name,
        "type": explained.tool.type.value,
        "server": None if explained.tool.mcp is None else explained.tool.mcp.server_slug,
        "agent_id": explained.agent.id,
        "agent": explained.agent.config.name,
        "agent_version": explained.agent.version,
        "standing": explained.standing.value,
        "decided_by": _source_view(explained.decided_by),
        "reasons": list(explained.reasons),
        "layers": [
            {
                "layer": layer.layer.value,
                "in_allowlist": layer.in_allowlist,
                "rules": {pattern: cast(ToolRuleView, rule_to_json(rule)) for pattern, rule in layer.rules},
            }
            for layer in explained.layers
        ],
        "effective": _effective_view(explained.policy, repeatable=explained.repeatable),
    }


def _effective_view(policy: ToolPolicy, *, repeatable: bool) -> EffectiveView:
    return {
        "decision": policy.decision.value,
        "on_block": policy.on_block.value,
        "allowed_params": None if policy.allowed_params is None else sorted(policy.allowed_params),
        "denied_params": sorted(policy.denied_params),
        "arguments_schemas": [constraint.schema for constraint in policy.constraints],
        "max_results": policy.max_results,
        "max_calls": policy.max_calls,
        "max_result_bytes": policy.max_result_bytes,
        "on_unknown_outcome": policy.on_unknown_outcome.value,
        "timeout_s": policy.timeout_s,
        "approval_ttl_s": policy.approval.ttl_s,
        "allow_self_approval": policy.approval.allow_self,
        "repeatable": repeatable,
        "sources": {name: [_source_view(source) for source in sources] for name, sources in policy.sources.items()},
    }


def _source_view(source: Source) -> RuleSourceView:
    return {"layer": source.layer.value, "pattern": source.pattern}
