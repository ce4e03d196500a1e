"""Combines the policy layers into the effective policy of a tool. Layers only tighten each other,
except where a rule is `overridable`."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import reduce
from typing import Generic, TypeAlias, TypeVar

from domain.json_value import JsonObject
from domain.policy.allowlist import Allowlist, allows
from domain.policy.approvers import Approvers
from domain.policy.approvers import both as approvers_of_both
from domain.policy.rules import NO_POLICIES, OnBlock, OnUnknownOutcome, ToolPolicies, ToolRule, Verdict
from domain.policy.selection import RuleSelection, Selected

DEFAULT_APPROVAL_TTL_S = 86_400.0
_T = TypeVar("_T")


class PolicyLayer(StrEnum):
    """The policy layers, in order of evaluation. A run has only an allowlist. `caller` is the agent
    that called this one as a tool (`domain/policy/caller.py`)."""

    BUILT_IN = "built-in"
    ORGANIZATION = "organization"
    AGENT = "agent"
    RUN = "run"
    CALLER = "caller"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The origin of a value: the layer, and the pattern of the rule (None: not from a rule)."""

    layer: PolicyLayer
    pattern: str | None = None


BUILT_IN = Source(layer=PolicyLayer.BUILT_IN)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentsConstraint:
    """A JSON Schema that the arguments must match."""

    source: Source
    schema: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalTerms:
    """How long an approval may take (`ttl_s`), whether the person who started the run may approve
    (`allow_self`), and who may decide: those in each of `approvers`. Without any, each operator
    may. `needed` different people must approve."""

    ttl_s: float = DEFAULT_APPROVAL_TTL_S
    allow_self: bool = True
    approvers: tuple[Approvers, ...] = ()
    needed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPolicy:
    """The effective policy of one tool in one run, computed once per toolset.

    - `hidden_by` is the layer with the allowlist that hides the tool.
    - `idempotent` None defers to the tool's annotations, which apply to trusted servers only.
    - `sources` maps each field of a rule (`decision`, `max_calls`, …) to the origin of its value;
      fields that no rule sets are absent.
    """

    hidden_by: PolicyLayer | None = None
    decision: Verdict = Verdict.ALLOW
    on_block: OnBlock = OnBlock.INFORM
    allowed_params: frozenset[str] | None = None
    denied_params: frozenset[str] = frozenset()
    constraints: tuple[ArgumentsConstraint, ...] = ()
    max_results: int | None = None
    max_calls: int | None = None
    max_result_bytes: int | None = None
    idempotent: bool | None = None
    on_unknown_outcome: OnUnknownOutcome = OnUnknownOutcome.INFORM
    timeout_s: float | None = None
    approval: ApprovalTerms = ApprovalTerms()
    sources: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)

    def source_of(self, rule_field: str) -> Source:
        """The first source of a field's value; the built-in default if no rule has set it."""
        return self.sources.get(rule_field, (BUILT_IN,))[0]


UNRESTRICTED = ToolPolicy()
_Key: TypeAlias = tuple[PolicyLayer | None, tuple[tuple[PolicyLayer, tuple[str, ...]], ...]]


class PolicyLayers:
    """The policy layers of one run, prepared for many lookups. An absent layer restricts
    nothing."""

    def __init__(
        self,
        *,
        organization: ToolPolicies = NO_POLICIES,
        agent: ToolPolicies = NO_POLICIES,
        organization_allowlist: Allowlist = None,
        agent_allowlist: Allowlist = None,
        run_allowlist: Allowlist = None,
        agent_layer: PolicyLayer = PolicyLayer.AGENT,
    ) -> None:
        self._rules: tuple[tuple[PolicyLayer, RuleSelection], ...] = (
            (PolicyLayer.ORGANIZATION, RuleSelection(organization)),
            (agent_layer, RuleSelection(agent)),
        )
        self._allowlists = tuple(
            (layer, allowlist)
            for layer, allowlist in (
                (PolicyLayer.ORGANIZATION, organization_allowlist),
                (agent_layer, agent_allowlist),
                (PolicyLayer.RUN, run_allowlist),
            )
            if allowlist is not None
        )
        self._resolved: dict[_Key, ToolPolicy] = {}

    def with_rules(self, layer: PolicyLayer, rules: ToolPolicies) -> "PolicyLayers":
        """The same layers with other rules in one of them."""
        changed = copy(self)
        changed._rules = tuple((each, RuleSelection(rules) if each is layer else own) for each, own in self._rules)
        changed._resolved = {}
        return changed

    def hidden_by(self, name: str) -> PolicyLayer | None:
        """The layer with the allowlist that hides the tool, if any."""
        return next((layer for layer, allowlist in self._allowlists if not allows(allowlist, name)), None)

    def layers_for(self, name: str) -> tuple[tuple[PolicyLayer, Selected], ...]:
        """The rules that apply to the tool, by layer."""
        return tuple((layer, rules.of(name)) for layer, rules in self._rules)

    def permissions(self, name: str) -> tuple[tuple[PolicyLayer, Selected], ...]:
        """The rules that permit the tool despite a denial in their own layer, by layer."""
        return tuple((layer, rules.permission_of(name)) for layer, rules in self._rules)

    def resolve(self, name: str) -> ToolPolicy:
        hidden_by = self.hidden_by(name)
        matching = tuple((layer, selected) for layer, selected in self.layers_for(name) if selected)
        if not matching and hidden_by is None:
            return UNRESTRICTED
        # The policy depends on the matching rules alone, and most tools of a server match the same
        # rules.
        key = (hidden_by, tuple((layer, tuple(pattern for pattern, _ in selected)) for layer, selected in matching))
        known = self._resolved.get(key)
        if known is None:
            known = self._resolved[key] = _resolved(matching, hidden_by)
        return known


@dataclass(frozen=True, slots=True, kw_only=True)
class _RuleField(Generic[_T]):
    """The combined value of one field, its sources, and whether the next layer may replace it."""

    value: _T
    sources: tuple[Source, ...]
    overridable: bool

    def and_also(self, other: "_RuleField[_T]", tighter: Callable[[_T, _T], _T]) -> "_RuleField[_T]":
        """The tighter of both values, with its sources."""
        value = tighter(self.value, other.value)
        if value == self.value:
            sources = self.sources
        else:
            sources = other.sources if value == other.value else (*self.sources, *other.sources)
        return _RuleField(value=value, sources=sources, overridable=self.overridable and other.overridable)


def _resolved(matching: tuple[tuple[PolicyLayer, Selected], ...], hidden_by: PolicyLayer | None) -> ToolPolicy:
    sources: dict[str, tuple[Source, ...]] = {}

    def effective(name: str, read: Callable[[ToolRule], _T | None], tighter: Callable[[_T, _T], _T]) -> _T | None:
        together = _effective(matching, read, tighter)
        if together is None:
            return None
        sources[name] = together.sources
        return together.value

    ttl_s = effective("approval_ttl_s", lambda rule: rule.approval_ttl_s, min)
    allow_self = effective("allow_self_approval", lambda rule: rule.allow_self_approval, min)
    approvers = effective(
        "approvers", lambda rule: None if rule.approvers is None else (rule.approvers,), approvers_of_both
    )
    schemas = _effective(
        matching, lambda rule: None if rule.arguments_schema is None else (rule.arguments_schema,), _both
    )
    if schemas is not None:
        sources["arguments_schema"] = schemas.sources
    return ToolPolicy(
        hidden_by=hidden_by,
        decision=effective("decision", lambda rule: rule.decision, stricter) or Verdict.ALLOW,
        on_block=effective("on_block", lambda rule: rule.on_block, halting) or OnBlock.INFORM,
        allowed_params=effective(
            "allowed_params",
            lambda rule: None if rule.allowed_params is None else frozenset(rule.allowed_params),
            frozenset.intersection,
        ),
        denied_params=effective(
            "denied_params",
            lambda rule: None if rule.denied_params is None else frozenset(rule.denied_params),
            frozenset.union,
        )
        or frozenset(),
        constraints=()
        if schemas is None
        else tuple(
            ArgumentsConstraint(source=source, schema=schema)
            for source, schema in zip(schemas.sources, schemas.value, strict=True)
        ),
        max_results=effective("max_results", lambda rule: rule.max_results, min),
        max_calls=effective("max_calls", lambda rule: rule.max_calls, min),
        max_result_bytes=effective("max_result_bytes", lambda rule: rule.max_result_bytes, min),
        idempotent=effective("idempotent", lambda rule: rule.idempotent, min),
        on_unknown_outcome=effective("on_unknown_outcome", lambda rule: rule.on_unknown_outcome, asking)
        or OnUnknownOutcome.INFORM,
        timeout_s=effective("timeout_s", lambda rule: rule.timeout_s, min),
        approval=ApprovalTerms(
            ttl_s=DEFAULT_APPROVAL_TTL_S if ttl_s is None else ttl_s,
            allow_self=True if allow_self is None else allow_self,
            approvers=approvers or (),
            needed=effective("approvals_needed", lambda rule: rule.approvals_needed, max) or 1,
        ),
        sources=sources,
    )


def _effective(
    matching: Iterable[tuple[PolicyLayer, Selected]],
    read: Callable[[ToolRule], _T | None],
    tighter: Callable[[_T, _T], _T],
) -> _RuleField[_T] | None:
    combined: _RuleField[_T] | None = None
    for layer, selected in matching:
        stated = [
            _RuleField(
                value=value,
                sources=(Source(layer=layer, pattern=pattern),),
                overridable=rule.overridable,
            )
            for pattern, rule in selected
            if (value := read(rule)) is not None
        ]
        if not stated:
            continue
        own = reduce(lambda one, other: one.and_also(other, tighter), stated)
        combined = own if combined is None or combined.overridable else combined.and_also(own, tighter)
    return combined


def stricter(one: Verdict, other: Verdict) -> Verdict:
    return max(one, other, key=lambda verdict: verdict.strictness)


def halting(one: OnBlock, other: OnBlock) -> OnBlock:
    return OnBlock.HALT if OnBlock.HALT in (one, other) else OnBlock.INFORM


def asking(one: OnUnknownOutcome, other: OnUnknownOutcome) -> OnUnknownOutcome:
    # The stricter value: a model that is only informed may repeat the call by itself.
    asks = OnUnknownOutcome.REQUIRE_APPROVAL
    return asks if asks in (one, other) else OnUnknownOutcome.INFORM


def _both(one: tuple[JsonObject, ...], other: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    return (*one, *other)
