"""Tools as JSON."""

from collections.abc import Mapping
from typing import TypedDict

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
