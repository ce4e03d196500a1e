"""Listed and explained tools as JSON."""

from typing import cast

from application.tools.explain_tool import ToolExplanation
from application.tools.list_tools import ToolListing
from domain.policy.layers import Source, ToolPolicy
from domain.policy.rule_json import rule_to_json
from domain.threads.message_json import timestamp
from interfaces.http.tool_policy_views import ApproversView, ToolRuleView
from interfaces.http.tools.views import EffectiveView, ExplanationView, RuleSourceView, ToolView


def tool_view(listing: ToolListing) -> ToolView:
    return {
        "name": listing.tool.name,
        "type": listing.tool.type,
        "description": listing.tool.description,
        "parameters": listing.tool.parameters,
        "server": listing.server,
        "health": listing.health,
        "available": listing.available,
        "as_of": None if listing.as_of is None else timestamp(listing.as_of),
        "age_s": listing.age_s,
    }


def explanation_view(explained: ToolExplanation) -> ExplanationView:
    return {
        "name": explained.tool.name,
        "type": explained.tool.type,
        "server": None if explained.tool.mcp is None else explained.tool.mcp.server_slug,
        "agent_id": explained.agent.id,
        "agent": explained.agent.config.name,
        "agent_version": explained.agent.version,
        "standing": explained.standing,
        "decided_by": _source_view(explained.decided_by),
        "reasons": list(explained.reasons),
        "layers": [
            {
                "layer": layer.layer,
                "in_allowlist": layer.in_allowlist,
                "rules": {pattern: cast(ToolRuleView, rule_to_json(rule)) for pattern, rule in layer.rules},
            }
            for layer in explained.layers
        ],
        "effective": _effective_view(explained.policy, repeatable=explained.repeatable),
    }


def _effective_view(policy: ToolPolicy, *, repeatable: bool) -> EffectiveView:
    return {
        "decision": policy.decision,
        "on_block": policy.on_block,
        "allowed_params": None if policy.allowed_params is None else sorted(policy.allowed_params),
        "denied_params": sorted(policy.denied_params),
        "arguments_schemas": [constraint.schema for constraint in policy.constraints],
        "max_results": policy.max_results,
        "max_calls": policy.max_calls,
        "max_result_bytes": policy.max_result_bytes,
        "on_unknown_outcome": policy.on_unknown_outcome,
        "timeout_s": policy.timeout_s,
        "approval_ttl_s": policy.approval.ttl_s,
        "allow_self_approval": policy.approval.allow_self,
        "approvers": [cast("ApproversView", each.as_json()) for each in policy.approval.approvers],
        "approvals_needed": policy.approval.needed,
        "repeatable": repeatable,
        "sources": {name: [_source_view(source) for source in sources] for name, sources in policy.sources.items()},
    }


def _source_view(source: Source) -> RuleSourceView:
    return {"layer": source.layer, "pattern": source.pattern}
