"""Rules as JSON, in storage and in views: only the fields that a rule sets."""

from collections.abc import Mapping
from typing import cast

from domain.json_value import JsonObject, JsonValue
from domain.policy.approvers import Approvers
from domain.policy.condition import Condition, Day
from domain.policy.rules import OnBlock, OnUnknownOutcome, ToolPolicies, ToolRule, Verdict

_PLAIN = (
    "arguments_schema",
    "max_results",
    "max_calls",
    "max_result_bytes",
    "idempotent",
    "timeout_s",
    "approval_ttl_s",
    "allow_self_approval",
    "approvals_needed",
)


def policies_to_json(policies: ToolPolicies) -> JsonObject:
    """`{"mcp__git__*": {"decision": "deny"}}`"""
    return {pattern: rule_to_json(rule) for pattern, rule in policies.rules}


def policies_from_json(stored: JsonValue) -> ToolPolicies:
    rules = cast("dict[str, JsonObject]", stored)
    return ToolPolicies(rules=tuple((pattern, rule_from_json(rule)) for pattern, rule in rules.items()))


def rule_to_json(rule: ToolRule) -> JsonObject:
    stated: JsonObject = {}
    if rule.decision is not None:
        stated["decision"] = rule.decision.value
    if rule.on_block is not None:
        stated["on_block"] = rule.on_block.value
    if rule.on_unknown_outcome is not None:
        stated["on_unknown_outcome"] = rule.on_unknown_outcome.value
    if rule.allowed_params is not None:
        stated["allowed_params"] = list(rule.allowed_params)
    if rule.denied_params is not None:
        stated["denied_params"] = list(rule.denied_params)
    stated |= {name: value for name in _PLAIN if (value := getattr(rule, name)) is not None}
    if rule.approvers is not None:
        stated["approvers"] = rule.approvers.as_json()
    if rule.when is not None:
        stated["when"] = rule.when.as_json()
    if rule.overridable:
        stated["overridable"] = True
    return stated


def rule_from_json(stored: Mapping[str, JsonValue]) -> ToolRule:
    """The inverse of `rule_to_json`. Raises INVALID `tool_policy_invalid`."""
    decision = cast("str | None", stored.get("decision"))
    on_block = cast("str | None", stored.get("on_block"))
    on_unknown_outcome = cast("str | None", stored.get("on_unknown_outcome"))
    return ToolRule(
        decision=None if decision is None else Verdict(decision),
        on_block=None if on_block is None else OnBlock(on_block),
        on_unknown_outcome=None if on_unknown_outcome is None else OnUnknownOutcome(on_unknown_outcome),
        allowed_params=_names(stored.get("allowed_params")),
        denied_params=_names(stored.get("denied_params")),
        arguments_schema=cast("JsonObject | None", stored.get("arguments_schema")),
        max_results=cast("int | None", stored.get("max_results")),
        max_calls=cast("int | None", stored.get("max_calls")),
        max_result_bytes=cast("int | None", stored.get("max_result_bytes")),
        idempotent=cast("bool | None", stored.get("idempotent")),
        timeout_s=cast("float | None", stored.get("timeout_s")),
        approval_ttl_s=cast("float | None", stored.get("approval_ttl_s")),
        allow_self_approval=cast("bool | None", stored.get("allow_self_approval")),
        approvals_needed=cast("int | None", stored.get("approvals_needed")),
        approvers=_approvers(stored.get("approvers")),
        when=_condition(stored.get("when")),
        overridable=cast(bool, stored.get("overridable", False)),
    )


def _approvers(stored: JsonValue) -> Approvers | None:
    if not isinstance(stored, dict):
        return None
    return Approvers(people=_names(stored.get("people")) or (), groups=_names(stored.get("groups")) or ())


def _condition(stored: JsonValue) -> Condition | None:
    if not isinstance(stored, dict):
        return None
    return Condition(
        people=_names(stored.get("people")) or (),
        groups=_names(stored.get("groups")) or (),
        hours=cast("str | None", stored.get("hours")),
        days=tuple(map(Day, _names(stored.get("days")) or ())),
        time_zone=cast("str | None", stored.get("time_zone")),
    )


def _names(stored: JsonValue) -> tuple[str, ...] | None:
    return None if stored is None else tuple(cast("list[str]", stored))
