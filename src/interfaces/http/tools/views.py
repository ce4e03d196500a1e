"""Tools as JSON."""

from collections.abc import Mapping
from typing import Annotated, TypedDict

from application.tools.tool_health import ToolHealth
from application.tools.tool_standing import ToolStanding
from domain.policy.layers import PolicyLayer
from domain.policy.rules import OnBlock, OnUnknownOutcome, Verdict
from domain.tools.capabilities import ToolType
from interfaces.http.tool_policy_views import ApproversView, ToolRuleView
from interfaces.http.view_fields import Items, NextCursor, Timestamp


class ToolView(TypedDict):
    """A tool: `name` is its name for models, `server` the slug of its MCP server, `health` that
    server's state, `available` whether a call would be attempted now. Its definition is as of
    `as_of`, `age_s` seconds ago."""

    name: Annotated[str, "Name of the tool as models see it."]
    type: Annotated[ToolType, "Type of a native tool, or `mcp_tool`."]
    description: Annotated[str, "Description of the tool."]
    parameters: Annotated[Mapping[str, object], "JSON Schema of its arguments."]
    server: Annotated[str | None, "Slug of its MCP server; null for a native tool."]
    health: Annotated[ToolHealth, "Whether it can be called now, or why not."]
    available: Annotated[bool, "Whether a call would be attempted now."]
    as_of: Annotated[Timestamp | None, "Time of the server's last listing; null for a native tool."]
    age_s: Annotated[float | None, "Seconds since then."]


class ToolsView(TypedDict):
    """Tools; `next_cursor` is null on the last page."""

    data: Items[ToolView]
    next_cursor: NextCursor


class RuleSourceView(TypedDict):
    """Origin of a rule: `built-in`, `organization`, `agent` or `run`, and the pattern of the
    rule."""

    layer: Annotated[PolicyLayer, "Layer of the rule."]
    pattern: Annotated[str | None, "Pattern of the rule; null if it is no rule's."]


class LayerView(TypedDict):
    """The rules of one layer. `in_allowlist` is null if it has no allowlist; `rules` are those
    that apply, by pattern."""

    layer: Annotated[PolicyLayer, "The layer."]
    in_allowlist: Annotated[bool | None, "Whether its allowlist has the tool; null if it has no allowlist."]
    rules: Annotated[dict[str, ToolRuleView], "Rules that apply to the tool, by pattern."]


class EffectiveView(TypedDict):
    """The effective policy; `sources` gives the origin of each field set by a rule."""

    decision: Annotated[Verdict, "Decision on a call."]
    on_block: Annotated[OnBlock, "Effect of a blocked call on its run."]
    allowed_params: Annotated[list[str] | None, "Names of allowed arguments; null: all."]
    denied_params: Annotated[list[str], "Names of denied arguments."]
    arguments_schemas: Annotated[list[Mapping[str, object]], "JSON Schemas that the arguments must all match."]
    max_results: Annotated[int | None, "Most results that one call may ask for."]
    max_calls: Annotated[int | None, "Most calls per run."]
    max_result_bytes: Annotated[int | None, "Bytes of a result that the model gets at most."]
    on_unknown_outcome: Annotated[
        OnUnknownOutcome, "Handling of a call interrupted by a crash that must not be repeated."
    ]
    timeout_s: Annotated[float | None, "Most seconds for one call; null: the agent's limit."]
    approval_ttl_s: Annotated[float, "Seconds that an approval waits for its decision."]
    allow_self_approval: Annotated[bool, "Whether the person who started the run may approve."]
    approvers: Annotated[list[ApproversView], "Who decides approvals must be in each of these; none: each operator."]
    approvals_needed: Annotated[int, "Number of different people who must approve."]
    repeatable: Annotated[bool, "Whether a call may be sent again after a crash."]
    sources: Annotated[dict[str, list[RuleSourceView]], "Origin of each field that a rule sets."]


class ExplanationView(TypedDict):
    """`standing` is `allowed`, `asked_for`, `blocked` or `hidden`; `reasons` are sentences."""

    name: Annotated[str, "Name of the tool as models see it."]
    type: Annotated[ToolType, "Type of a native tool, or `mcp_tool`."]
    server: Annotated[str | None, "Slug of its MCP server; null for a native tool."]
    agent_id: Annotated[str, "Id of the agent."]
    agent: Annotated[str, "Name of the agent."]
    agent_version: Annotated[int, "Version of the agent."]
    standing: Annotated[ToolStanding, "What policy says about the tool, apart from arguments."]
    decided_by: Annotated[RuleSourceView, "The rule that decides."]
    reasons: Annotated[list[str], "The reasons, as sentences."]
    layers: Annotated[list[LayerView], "The rules of each layer, in order of evaluation."]
    effective: Annotated[EffectiveView, "The effective policy."]
