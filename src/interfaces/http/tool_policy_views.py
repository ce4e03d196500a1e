"""Tool policies in responses; agents and organizations share them."""

from typing import TypedDict, cast

from domain.policy.rule_json import policies_to_json
from domain.policy.rules import ToolPolicies


class ToolRuleView(TypedDict, total=False):
    """The fields that a rule sets."""

    decision: str
    on_block: str
    allowed_params: list[str]
    denied_params: list[str]
    arguments_schema: dict[str, object]
    max_results: int
    max_calls: int
    max_result_bytes: int
    idempotent: bool
    on_unknown_outcome: str
    timeout_s: float
    approval_ttl_s: float
    allow_self_approval: bool
    overridable: bool


def policies_view(policies: ToolPolicies) -> dict[str, ToolRuleView]:
    return cast("dict[str, ToolRuleView]", policies_to_json(policies))
