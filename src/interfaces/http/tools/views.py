"""Tools as JSON."""

from collections.abc import Mapping
from typing import TypedDict

from interfaces.http.tool_policy_views import ToolRuleView


class ToolView(TypedDict):
    """A tool: `name` is its name for models, `server` the slug of its MCP server, `health` that
    server's state, `available` whether a call would be attempted now. Its definition is as of
    `as_of`, `age_s` seconds ago."""

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
    """Origin of a rule: `built-in`, `organization`, `agent` or `run`, and the pattern of the
    rule."""

    layer: str
    pattern: str | None


class LayerView(TypedDict):
    """The rules of one layer. `in_allowlist` is null if it has no allowlist; `rules` are those
    that apply, by pattern."""

    layer: str
    in_allowlist: bool | None
    rules: dict[str, ToolRuleView]


class EffectiveView(TypedDict):
    """The effective policy; `sources` gives the origin of each field set by a rule."""

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
    """`standing` is `allowed`, `asked_for`, `blocked` or `hidden`; `reasons` are sentences."""

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
