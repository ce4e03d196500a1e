"""The rules of one policy layer: one per tool name or glob, validated on construction."""

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum

from domain.errors import Violation, invalid
from domain.json_value import JsonObject
from domain.policy.approvers import Approvers
from domain.policy.condition import Circumstances, Condition

MAX_RULES = 1_000
MAX_PATTERN_LENGTH = 128
MAX_PARAMS = 200
MAX_PARAM_LENGTH = 200
MAX_COUNT = 1_000_000
MAX_TIMEOUT_S = 86_400.0
MAX_RESULT_BYTES = 4 * 1024 * 1024
MAX_APPROVAL_TTL_S = 90 * 86_400.0
MAX_APPROVALS_NEEDED = 10
_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!-]+")


class Verdict(StrEnum):
    """The verdict about a call, from the mildest to the strictest."""

    ALLOW = "allow"
    REQUIRE_APPROVAL = "require_approval"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return _STRICTNESS[self]


_STRICTNESS = {Verdict.ALLOW: 0, Verdict.REQUIRE_APPROVAL: 1, Verdict.DENY: 2}


class OnBlock(StrEnum):
    """The effect of a blocked call on its run: the model is informed, or the run ends."""

    INFORM = "inform"
    HALT = "halt"


class OnUnknownOutcome(StrEnum):
    """How a call is handled that may have been sent before a crash and must not be repeated.

    The model is informed that the outcome is unknown, or a person decides whether the call is sent
    again.
    """

    INFORM = "inform"
    REQUIRE_APPROVAL = "require_approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRule:
    """A rule for tools. A field that is None states nothing.

    - `allowed_params` and `denied_params` are names of arguments. None allows any; an empty
      `allowed_params` allows none.
    - `arguments_schema` is a JSON Schema that the arguments must match, in addition to the tool's
      own.
    - `max_calls` applies per tool and run, and to all steps of a workflow run.
    - `max_result_bytes` bounds the text of a result that the model gets.
    - `approval_ttl_s` is how long an approval waits. `allow_self_approval` is whether the person
      who started the run may approve; false is the four-eyes rule. `approvers` are who may decide.
      `approvals_needed` different people must approve; one of them denies. All apply to approvals
      of `on_unknown_outcome` too.
    - `when` restricts the rule to people and times. While the condition does not hold, the rule
      does not exist. Such a rule states a decision.
    - `overridable` (organizations only) lets an agent's rule replace this rule's values instead of
      only tightening them.
    """

    decision: Verdict | None = None
    on_block: OnBlock | None = None
    allowed_params: tuple[str, ...] | None = None
    denied_params: tuple[str, ...] | None = None
    arguments_schema: JsonObject | None = None
    max_results: int | None = None
    max_calls: int | None = None
    max_result_bytes: int | None = None
    idempotent: bool | None = None
    on_unknown_outcome: OnUnknownOutcome | None = None
    timeout_s: float | None = None
    approval_ttl_s: float | None = None
    allow_self_approval: bool | None = None
    approvers: Approvers | None = None
    approvals_needed: int | None = None
    when: Condition | None = None
    overridable: bool = False

    def __post_init__(self) -> None:
        wrong = [*self._wrong_numbers(), *self._wrong_params()]
        if self.when is not None and self.decision is None:
            wrong.append(Violation(path="when", message="needs a decision in the same rule"))
        if wrong:
            raise invalid("tool_policy_invalid", "The tool policy is not valid.", *wrong)

    def unmet(self, now: Circumstances) -> str | None:
        """Why the rule's condition does not hold; None if it holds, or if the rule has none."""
        return None if self.when is None else self.when.unmet(now, permits=self.decision is Verdict.ALLOW)

    def _wrong_numbers(self) -> Iterator[Violation]:
        bounds: tuple[tuple[str, float | None, float], ...] = (
            ("max_results", self.max_results, MAX_COUNT),
            ("max_calls", self.max_calls, MAX_COUNT),
            ("max_result_bytes", self.max_result_bytes, MAX_RESULT_BYTES),
            ("timeout_s", self.timeout_s, MAX_TIMEOUT_S),
            ("approval_ttl_s", self.approval_ttl_s, MAX_APPROVAL_TTL_S),
            ("approvals_needed", self.approvals_needed, MAX_APPROVALS_NEEDED),
        )
        for path, value, most in bounds:
            # Not `value <= 0`: comparisons with NaN are always false.
            if value is not None and not 0 < value <= most:
                yield Violation(path=path, message=f"must be greater than 0 and at most {most:g}")

    def _wrong_params(self) -> Iterator[Violation]:
        for path, names in (("allowed_params", self.allowed_params), ("denied_params", self.denied_params)):
            if names is None:
                continue
            if len(names) > MAX_PARAMS:
                yield Violation(path=path, message=f"names more than {MAX_PARAMS} parameters")
            if len(set(names)) != len(names):
                yield Violation(path=path, message="names a parameter twice")
            for index, name in enumerate(names[:MAX_PARAMS]):
                if not 0 < len(name) <= MAX_PARAM_LENGTH:
                    yield Violation(path=f"{path}.{index}", message=f"must have 1 to {MAX_PARAM_LENGTH} characters")
        both = sorted(set(self.allowed_params or ()) & set(self.denied_params or ()))
        if both:
            yield Violation(path="denied_params", message=f"denies what allowed_params allows: {', '.join(both[:5])}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicies:
    """The rules of one layer by pattern: a model-facing tool name, or a case-sensitive glob (`*`,
    `?`, `[…]`)."""

    rules: tuple[tuple[str, ToolRule], ...] = ()
    is_conditional: bool = field(init=False, compare=False)
    """Whether a rule has a condition."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_conditional", any(rule.when is not None for _, rule in self.rules))
        wrong = [
            Violation(
                path=pattern[:MAX_PATTERN_LENGTH], message="is not a tool name or glob of A-Z a-z 0-9 _ - * ? [ ]"
            )
            for pattern, _ in self.rules
            if len(pattern) > MAX_PATTERN_LENGTH or not _PATTERN.fullmatch(pattern)
        ]
        if len(self.rules) > MAX_RULES:
            wrong = [Violation(path="", message=f"has more than {MAX_RULES} rules")]
        elif len(dict(self.rules)) != len(self.rules):
            wrong.append(Violation(path="", message="has a pattern twice"))
        if wrong:
            raise invalid("tool_policy_invalid", "The tool policies are not valid.", *wrong)

    def __hash__(self) -> int:
        # Schemas in rules are dicts, which are not hashable; patterns distinguish policies well
        # enough.
        return hash(tuple(pattern for pattern, _ in self.rules))

    def __bool__(self) -> bool:
        return bool(self.rules)

    def under(self, now: Circumstances) -> "ToolPolicies":
        """The rules whose conditions hold."""
        return self._with(tuple(each for each in self.rules if each[1].unmet(now) is None))

    def at_their_mildest(self) -> "ToolPolicies":
        """The rules without the conditional ones that restrict: what any person may do at any
        time."""
        return self._with(
            tuple(each for each in self.rules if each[1].when is None or each[1].decision is Verdict.ALLOW)
        )

    def unconditional(self) -> "ToolPolicies":
        """The rules without conditions."""
        return self._with(tuple(each for each in self.rules if each[1].when is None))

    def _with(self, rules: tuple[tuple[str, ToolRule], ...]) -> "ToolPolicies":
        if len(rules) == len(self.rules):
            return self
        fewer = copy(self)  # not validated again: calls come here
        object.__setattr__(fewer, "rules", rules)
        return fewer


NO_POLICIES = ToolPolicies()
