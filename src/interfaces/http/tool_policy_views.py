"""Tool policies in responses; agents and organizations share them."""

from typing import Annotated, TypedDict, cast

from domain.policy.condition import Day
from domain.policy.rule_json import policies_to_json
from domain.policy.rules import OnBlock, OnUnknownOutcome, ToolPolicies, Verdict


class ApproversView(TypedDict, total=False):
    """Those who may decide: people, and members of groups."""

    people: Annotated[list[str], "Ids of users or API keys."]
    groups: Annotated[list[str], "Names of groups."]


class ConditionView(TypedDict, total=False):
    """Who acts, and when. What is absent is no condition."""

    people: Annotated[list[str], "Ids of users or API keys. With `groups`: one of them suffices."]
    groups: Annotated[list[str], "Names of groups."]
    hours: Annotated[str, "Hours of a day, such as `08:00-18:00`; the end is excluded."]
    days: Annotated[list[Day], "Days of the week."]
    time_zone: Annotated[str, "Zone of hours and days, such as `Europe/Berlin`. Default: UTC."]


class ToolRuleView(TypedDict, total=False):
    """The fields that a rule sets."""

    decision: Annotated[Verdict, "Decision on a call."]
    on_block: Annotated[OnBlock, "Effect of a blocked call on its run."]
    allowed_params: Annotated[list[str], "Names of allowed arguments. Absent: all; `[]`: none."]
    denied_params: Annotated[list[str], "Names of denied arguments. Takes precedence over `allowed_params`."]
    arguments_schema: Annotated[dict[str, object], "A JSON Schema for the arguments, in addition to the tool's own."]
    max_results: Annotated[int, "Most results that one call may ask for."]
    max_calls: Annotated[int, "Most calls per tool and run."]
    max_result_bytes: Annotated[int, "Bytes of a result that the model gets at most. Default: 65536."]
    idempotent: Annotated[bool, "Whether a call may be sent again after a crash."]
    on_unknown_outcome: Annotated[
        OnUnknownOutcome, "Handling of a call interrupted by a crash that must not be repeated."
    ]
    timeout_s: Annotated[float, "Most seconds for one call."]
    approval_ttl_s: Annotated[float, "Seconds that an approval waits for its decision. Default: one day."]
    allow_self_approval: Annotated[bool, "Whether the person who started the run may approve; false: four eyes."]
    approvers: Annotated[ApproversView, "Who may decide approvals. Default: each operator."]
    approvals_needed: Annotated[int, "Number of different people who must approve. Default: 1."]
    when: Annotated[ConditionView, "Condition of the rule. While it does not hold, the rule does not exist."]
    overridable: Annotated[bool, "In organizations' rules: agents may override the rule."]


def policies_view(policies: ToolPolicies) -> dict[str, ToolRuleView]:
    return cast("dict[str, ToolRuleView]", policies_to_json(policies))
