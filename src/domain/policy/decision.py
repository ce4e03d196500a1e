"""The one decision about a tool call, used for listing, calls, the gateway and audit entries."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from domain.json_value import JsonObject
from domain.policy.layers import PolicyLayers, Source, ToolPolicy
from domain.policy.rules import OnBlock, Verdict

_MAX_SHOWN = 80
_MAX_LISTED = 20


class DecisionReason(StrEnum):
    """The reason of a decision. The values are public (`reason` of `tool.blocked`, audit entries,
    explanations)."""

    ALLOWED = "allowed"
    APPROVAL_REQUIRED = "approval_required"
    HIDDEN = "tool_hidden"
    TOOL_DENIED = "tool_denied"
    PARAMETER_DENIED = "parameter_denied"
    ARGUMENTS_DENIED = "arguments_denied"
    MAX_CALLS_REACHED = "max_calls_reached"


_REASONS = {
    Verdict.ALLOW: DecisionReason.ALLOWED,
    Verdict.REQUIRE_APPROVAL: DecisionReason.APPROVAL_REQUIRED,
    Verdict.DENY: DecisionReason.TOOL_DENIED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision about one call.

    `sentence` tells the model why the call is blocked; empty otherwise. `source` is the deciding
    layer and rule. `policy` holds what else applies to the call: timeout, size of results,
    approval.
    """

    verdict: Verdict
    reason: DecisionReason
    source: Source
    policy: ToolPolicy
    sentence: str = ""

    @property
    def is_hidden(self) -> bool:
        """Whether to answer as if the tool did not exist."""
        return self.reason is DecisionReason.HIDDEN

    @property
    def is_blocked(self) -> bool:
        """Whether the call is refused with `sentence`. A call of a hidden tool is refused as
        unknown instead."""
        return self.verdict is Verdict.DENY and not self.is_hidden

    @property
    def halts(self) -> bool:
        return self.is_blocked and self.policy.on_block is OnBlock.HALT

    def as_json(self) -> JsonObject:
        return {
            "verdict": str(self.verdict),
            "reason": str(self.reason),
            "layer": str(self.source.layer),
            "pattern": self.source.pattern,
        }


def decide(
    layers: PolicyLayers,
    name: str,
    arguments: JsonObject,
    *,
    violations: Sequence[str] = (),
    calls_so_far: int = 0,
) -> Decision:
    """The decision about a call of the tool `name`. Callers with many calls resolve the policy once
    and use `decide_call`."""
    return decide_call(layers.resolve(name), name, arguments, violations=violations, calls_so_far=calls_so_far)


def decide_call(
    policy: ToolPolicy,
    name: str,
    arguments: JsonObject,
    *,
    violations: Sequence[str] = (),
    calls_so_far: int = 0,
) -> Decision:
    """The decision about one call under the policy of its tool.

    `violations` says how the arguments fail `policy.constraints`; `calls_so_far` is how often this
    run has called the tool. Reasons to block are checked before an approval is requested.
    """
    refused = decide_tool(policy, name)
    if refused is not None:
        return refused
    for parameter in arguments:
        if parameter in policy.denied_params:
            return _blocked(
                policy,
                DecisionReason.PARAMETER_DENIED,
                policy.source_of("denied_params"),
                f"The call of {name} was blocked by policy: the parameter {_shown(parameter)} may not be given.",
            )
        if policy.allowed_params is not None and parameter not in policy.allowed_params:
            return _blocked(
                policy,
                DecisionReason.PARAMETER_DENIED,
                policy.source_of("allowed_params"),
                f"The call of {name} was blocked by policy: the parameter {_shown(parameter)} may not be given; "
                f"{_listed(policy.allowed_params)}.",
            )
    if violations:
        faults = "\n".join(f"- {violation}" for violation in violations)
        return _blocked(
            policy,
            DecisionReason.ARGUMENTS_DENIED,
            policy.source_of("arguments_schema"),
            f"The call of {name} was blocked by policy, which does not allow these arguments:\n{faults}",
        )
    if policy.max_calls is not None and calls_so_far >= policy.max_calls:
        times = "once" if policy.max_calls == 1 else f"{policy.max_calls} times"
        return _blocked(
            policy,
            DecisionReason.MAX_CALLS_REACHED,
            policy.source_of("max_calls"),
            f"The call of {name} was blocked by policy: the tool may be called {times} in one run. Go on without it.",
        )
    return rule_decision(policy)


def rule_decision(policy: ToolPolicy) -> Decision:
    """The decision for a call to which nothing but the verdict of the rules applies."""
    if policy.hidden_by is not None:
        return Decision(
            verdict=Verdict.DENY,
            reason=DecisionReason.HIDDEN,
            source=Source(layer=policy.hidden_by),
            policy=policy,
            sentence=f"The tool is not in the {policy.hidden_by.value}'s tool_allowlist.",
        )
    return Decision(
        verdict=policy.decision, reason=_REASONS[policy.decision], source=policy.source_of("decision"), policy=policy
    )


def decide_tool(policy: ToolPolicy, name: str) -> Decision | None:
    """The refusal that applies to every call of the tool; None if the arguments decide."""
    if policy.hidden_by is not None:
        return rule_decision(policy)
    if policy.decision is Verdict.DENY:
        return _blocked(
            policy,
            DecisionReason.TOOL_DENIED,
            policy.source_of("decision"),
            f"The call of {name} was blocked by policy: the tool may not be used. Go on without it.",
        )
    return None


def _blocked(policy: ToolPolicy, reason: DecisionReason, source: Source, sentence: str) -> Decision:
    return Decision(verdict=Verdict.DENY, reason=reason, source=source, policy=policy, sentence=sentence)


def _shown(parameter: str) -> str:
    return repr(parameter if len(parameter) <= _MAX_SHOWN else f"{parameter[:_MAX_SHOWN]}…")


def _listed(allowed: frozenset[str]) -> str:
    if not allowed:
        return "it may be called without parameters only"
    names = [repr(name) for name in sorted(allowed)[:_MAX_LISTED]]
    return f"only {', '.join(names)}{' and others' if len(allowed) > _MAX_LISTED else ''} may"
