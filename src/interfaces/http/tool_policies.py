"""Tool policies in bodies; agents and organizations share them."""

from typing import Annotated, ClassVar

from pydantic import Field

from domain.errors import ServiceError, Violation, invalid
from domain.policy.approvers import MAX_APPROVERS, MAX_GROUP_NAME, Approvers
from domain.policy.condition import MAX_HOURS, MAX_TIME_ZONE, Condition, Day
from domain.policy.rules import (
    MAX_APPROVAL_TTL_S,
    MAX_APPROVALS_NEEDED,
    MAX_COUNT,
    MAX_PARAMS,
    MAX_RESULT_BYTES,
    MAX_RULES,
    MAX_TIMEOUT_S,
    OnBlock,
    OnUnknownOutcome,
    ToolPolicies,
    ToolRule,
    Verdict,
)
from interfaces.http.bodies import Body
from interfaces.http.tool_policy_views import ApproversView, ConditionView, ToolRuleView

_Decision = Annotated[Verdict, Field(strict=False)]
_OnBlock = Annotated[OnBlock, Field(strict=False)]
_OnUnknownOutcome = Annotated[OnUnknownOutcome, Field(strict=False)]
_Params = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(strict=False, max_length=MAX_PARAMS)]
_Approvers = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_GROUP_NAME)], ...], Field(strict=False, max_length=MAX_APPROVERS)
]


class ApproversBody(Body):
    """Those who may decide: people, and members of groups. At least one."""

    shown_as: ClassVar[type] = ApproversView

    people: _Approvers = ()
    groups: _Approvers = ()

    def to_domain(self) -> Approvers:
        return Approvers(people=self.people, groups=self.groups)


class ConditionBody(Body):
    """Who acts, and when: people, groups, hours or days; at least one of them."""

    shown_as: ClassVar[type] = ConditionView

    people: _Approvers = ()
    groups: _Approvers = ()
    hours: str | None = Field(default=None, max_length=MAX_HOURS)
    days: Annotated[tuple[Annotated[Day, Field(strict=False)], ...], Field(strict=False, max_length=len(Day))] = ()
    time_zone: str | None = Field(default=None, max_length=MAX_TIME_ZONE)

    def to_domain(self) -> Condition:
        return Condition(**self.values())


class ToolRuleBody(Body):
    """A rule for tools. Absent or null leaves a field to the other layers."""

    shown_as: ClassVar[type] = ToolRuleView

    decision: _Decision | None = None
    on_block: _OnBlock | None = None
    allowed_params: _Params | None = None
    denied_params: _Params | None = None
    arguments_schema: dict[str, object] | None = None
    max_results: int | None = Field(default=None, gt=0, le=MAX_COUNT)
    max_calls: int | None = Field(default=None, gt=0, le=MAX_COUNT)
    max_result_bytes: int | None = Field(default=None, gt=0, le=MAX_RESULT_BYTES)
    idempotent: bool | None = None
    on_unknown_outcome: _OnUnknownOutcome | None = None
    timeout_s: float | None = Field(default=None, gt=0, le=MAX_TIMEOUT_S)
    approval_ttl_s: float | None = Field(default=None, gt=0, le=MAX_APPROVAL_TTL_S)
    allow_self_approval: bool | None = None
    approvers: ApproversBody | None = None
    approvals_needed: int | None = Field(default=None, gt=0, le=MAX_APPROVALS_NEEDED)
    when: ConditionBody | None = None
    overridable: bool = False

    def to_domain(self) -> ToolRule:
        """The rule. Raises INVALID."""
        return ToolRule(**self.values())


PoliciesBody = Annotated[dict[str, ToolRuleBody], Field(max_length=MAX_RULES)]
"""Rules by tool name or glob."""


def policies_of(bodies: dict[str, ToolRuleBody]) -> ToolPolicies:
    """The policies. Raises INVALID `tool_policy_invalid` with all faults, by path in the body."""
    rules: list[tuple[str, ToolRule]] = []
    wrong: list[Violation] = []
    for pattern, body in bodies.items():
        try:
            rules.append((pattern, body.to_domain()))
        except ServiceError as error:
            wrong += _under(f"tool_policies.{pattern}", error)
    try:
        policies = ToolPolicies(rules=tuple(rules))
    except ServiceError as error:
        raise invalid(error.code, error.detail, *wrong, *_under("tool_policies", error)) from error
    if wrong:
        raise invalid("tool_policy_invalid", "The tool policies are not valid.", *wrong)
    return policies


def _under(path: str, error: ServiceError) -> list[Violation]:
    return [
        Violation(path=f"{path}.{fault.path}" if fault.path else path, message=fault.message)
        for fault in error.violations
    ]
