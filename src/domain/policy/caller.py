"""An agent that is called as a tool: its policy, tightened by the policy of its caller."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from domain.policy.allowlist import Allowlist
from domain.policy.approvers import both
from domain.policy.layers import (
    ApprovalTerms,
    PolicyLayer,
    PolicyLayers,
    Source,
    ToolPolicy,
    asking,
    halting,
    stricter,
)
from domain.policy.rules import ToolPolicies

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerRules:
    """The allowlist and the policies of the agent that called this one."""

    allowlist: Allowlist
    policies: ToolPolicies


class Restrictions(TypedDict):
    """The policies and allowlists of a run, as `PolicyLayers` takes them."""

    organization: ToolPolicies
    agent: ToolPolicies
    organization_allowlist: Allowlist
    agent_allowlist: Allowlist
    run_allowlist: Allowlist


class CalledLayers(PolicyLayers):
    """The policy layers of a run that an agent's tool call started.

    The organization's and the agent's rules give one policy, the organization's and the caller's
    rules another one. Both apply: nothing is permitted that either of them refuses.
    """

    def __init__(self, caller: CallerRules, restrictions: Restrictions) -> None:
        super().__init__(**restrictions)
        self._caller = PolicyLayers(
            organization=restrictions["organization"],
            organization_allowlist=restrictions["organization_allowlist"],
            agent=caller.policies,
            agent_allowlist=caller.allowlist,
            agent_layer=PolicyLayer.CALLER,
        )
        # Policies are shared by all tools that match the same rules.
        self._joint: dict[tuple[int, int], ToolPolicy] = {}

    def resolve(self, name: str) -> ToolPolicy:
        own, callers = super().resolve(name), self._caller.resolve(name)
        key = (id(own), id(callers))  # both are cached as long as these layers
        known = self._joint.get(key)
        if known is None:
            known = self._joint[key] = held_to(own, callers)
        return known


def held_to(own: ToolPolicy, other: ToolPolicy) -> ToolPolicy:
    """`own`, tightened by `other` in every field. `other` never makes a tool idempotent."""
    joint = _Joint(own, other)
    # A statement that calls may be repeated is no restriction.
    idempotent = own.idempotent if other.idempotent is not False else False
    if idempotent != own.idempotent:
        joint.sources["idempotent"] = other.sources["idempotent"]
    return ToolPolicy(
        hidden_by=own.hidden_by or other.hidden_by,
        decision=joint.of("decision", own.decision, other.decision, stricter),
        on_block=joint.of("on_block", own.on_block, other.on_block, halting),
        allowed_params=joint.stated("allowed_params", own.allowed_params, other.allowed_params, frozenset.intersection),
        denied_params=joint.of("denied_params", own.denied_params, other.denied_params, frozenset.union),
        constraints=(*own.constraints, *(one for one in other.constraints if one not in own.constraints)),
        max_results=joint.stated("max_results", own.max_results, other.max_results, min),
        max_calls=joint.stated("max_calls", own.max_calls, other.max_calls, min),
        max_result_bytes=joint.stated("max_result_bytes", own.max_result_bytes, other.max_result_bytes, min),
        idempotent=idempotent,
        on_unknown_outcome=joint.of("on_unknown_outcome", own.on_unknown_outcome, other.on_unknown_outcome, asking),
        timeout_s=joint.stated("timeout_s", own.timeout_s, other.timeout_s, min),
        approval=ApprovalTerms(
            ttl_s=joint.of("approval_ttl_s", own.approval.ttl_s, other.approval.ttl_s, min),
            allow_self=joint.of("allow_self_approval", own.approval.allow_self, other.approval.allow_self, min),
            approvers=joint.of("approvers", own.approval.approvers, other.approval.approvers, both),
            needed=joint.of("approvals_needed", own.approval.needed, other.approval.needed, max),
        ),
        sources=joint.with_constraints(),
    )


class _Joint:
    """The tighter values of two policies, with their sources."""

    def __init__(self, own: ToolPolicy, other: ToolPolicy) -> None:
        self._own, self._other = own, other
        self.sources: dict[str, tuple[Source, ...]] = {**own.sources}

    def of(self, name: str, one: _T, other: _T, tighter: Callable[[_T, _T], _T]) -> _T:
        """The tighter value. If it differs from `one`, its source is the other policy."""
        value = tighter(one, other)
        if value != one:
            kept = () if value == other else self._own.sources.get(name, ())
            self.sources[name] = (*kept, *self._other.sources.get(name, ()))
        return value

    def stated(self, name: str, one: _T | None, other: _T | None, tighter: Callable[[_T, _T], _T]) -> _T | None:
        """The same for a value that may be absent. An absent value restricts nothing."""
        if one is None and other is not None:
            self.sources[name] = self._other.sources.get(name, ())
        if one is None or other is None:
            return other if one is None else one
        return self.of(name, one, other, tighter)

    def with_constraints(self) -> dict[str, tuple[Source, ...]]:
        found = (*self._own.constraints, *self._other.constraints)
        if found:
            self.sources["arguments_schema"] = tuple(dict.fromkeys(one.source for one in found))
        return self.sources
