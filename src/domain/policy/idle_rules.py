"""Finds rules of a layer without effect: they match no tool, or other rules decide."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from domain.policy.layers import PolicyLayer, PolicyLayers, Source, ToolPolicy
from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.policy.selection import fitting


class IdleReason(StrEnum):
    """Why a rule or field has no effect."""

    NO_TOOL = "no_tool"
    """No tool has a matching name."""
    MORE_SPECIFIC = "more_specific"
    """A more specific rule of the same layer applies to each matching tool."""
    HIDDEN = "hidden"
    """An allowlist hides each tool that the rule applies to."""
    ALREADY_SAID = "already_said"
    """For each tool that the rule applies to, other rules say the same or something stricter."""
    DENIED = "denied"
    """Other rules deny each tool that the rule applies to, so no call is made."""


MAX_VERIFIED = 1_000_000
"""Rules times tools, over all statements: a few microseconds each."""
_OF_DENIALS = frozenset({"decision", "on_block"})
"""Fields that affect denied tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleStatement:
    """The rule `pattern` of a layer, or only `fields` of it, changes nothing. The rules in `by`
    decide instead."""

    pattern: str
    reason: IdleReason
    fields: tuple[str, ...] = ()
    by: tuple[Source, ...] = ()


def idle_statements(
    layers: PolicyLayers, rules: ToolPolicies, names: Sequence[str], layer: PolicyLayer = PolicyLayer.AGENT
) -> tuple[IdleStatement, ...]:
    """The statements of `rules` that have no effect on the tools `names`, in the order of the
    rules. `rules` are those of `layer` in `layers`. What cannot be verified within MAX_VERIFIED
    steps is left out."""
    review = _Review(layers, layer, names)
    holds: dict[str, list[str]] = {pattern: [] for pattern, _ in rules.rules}
    for name in names:
        for pattern in dict.fromkeys((*review.selected(name), *review.permitting(name))):
            holds[pattern].append(name)
    found: list[IdleStatement] = []
    left = MAX_VERIFIED
    for pattern, rule in rules.rules:
        for statement in review.idle(pattern, rule, holds[pattern]):
            if statement.reason is not IdleReason.NO_TOOL:
                left -= len(rules.rules) * (1 + len(tuple(fitting(pattern, names))))
                if left < 0 or not review.changes_nothing(rules, statement):
                    continue
            found.append(statement)
    return tuple(found)


class _Review:
    def __init__(self, layers: PolicyLayers, layer: PolicyLayer, names: Sequence[str]) -> None:
        self._layers = layers
        self._layer = layer
        self._names = names
        self._resolved: dict[str, ToolPolicy] = {}

    def resolve(self, name: str) -> ToolPolicy:
        """The policy of the tool with all rules, made once."""
        if (policy := self._resolved.get(name)) is None:
            policy = self._resolved[name] = self._layers.resolve(name)
        return policy

    def selected(self, name: str) -> tuple[str, ...]:
        """Patterns of the layer's rules that apply to the tool."""
        return tuple(
            pattern for layer, found in self._layers.layers_for(name) if layer is self._layer for pattern, _ in found
        )

    def permitting(self, name: str) -> tuple[str, ...]:
        """Patterns of the layer's rules that permit the tool despite a denial."""
        said = self._layers.permissions(name)
        return tuple(pattern for layer, found in said if layer is self._layer for pattern, _ in found)

    def idle(self, pattern: str, rule: ToolRule, held: Sequence[str]) -> list[IdleStatement]:
        """The parts of the rule without effect; `held` are the tools that the rule applies to."""
        if not held:
            fits = tuple(fitting(pattern, self._names))
            if not fits:
                return [IdleStatement(pattern=pattern, reason=IdleReason.NO_TOOL)]
            others = dict.fromkeys(
                Source(layer=self._layer, pattern=other) for name in fits for other in self.selected(name)
            )
            return [IdleStatement(pattern=pattern, reason=IdleReason.MORE_SPECIFIC, by=tuple(others))]
        visible = [name for name in held if self._layers.hidden_by(name) is None]
        if not visible:
            hiding = dict.fromkeys(layer for name in held if (layer := self._layers.hidden_by(name)) is not None)
            by = tuple(Source(layer=layer) for layer in hiding)
            return [IdleStatement(pattern=pattern, reason=IdleReason.HIDDEN, by=by)]
        return self._idle_fields(pattern, rule, visible)

    def changes_nothing(self, rules: ToolPolicies, statement: IdleStatement) -> bool:
        """Whether each tool is treated the same without the statement. A rule also decides which
        other rules apply: a denial hides less specific ones, and a permission overrides them."""
        without = self._layers.with_rules(self._layer, _without(rules, statement))
        return all(
            _effect(self.resolve(name)) == _effect(without.resolve(name))
            for name in fitting(statement.pattern, self._names)
        )

    def _idle_fields(self, pattern: str, rule: ToolRule, names: Sequence[str]) -> list[IdleStatement]:
        own = Source(layer=self._layer, pattern=pattern)
        by_others: dict[tuple[IdleReason, tuple[Source, ...]], list[str]] = {}
        policies = [self.resolve(name) for name in names]
        for field in fields(rule):
            if field.name in ("overridable", "when") or getattr(rule, field.name) is None:
                continue
            matters = [
                policy for policy in policies if policy.decision is not Verdict.DENY or field.name in _OF_DENIALS
            ]
            deciding = dict.fromkeys(source for policy in matters for source in policy.sources.get(field.name, ()))
            reason = IdleReason.ALREADY_SAID if matters else IdleReason.DENIED
            if not matters:
                deciding = dict.fromkeys(source for policy in policies for source in policy.sources["decision"])
            if own not in deciding:
                by_others.setdefault((reason, tuple(deciding)), []).append(field.name)
        return [
            IdleStatement(pattern=pattern, reason=reason, fields=tuple(said), by=by)
            for (reason, by), said in by_others.items()
        ]


def _effect(policy: ToolPolicy) -> ToolPolicy | None:
    """What a policy means for calls, whatever its sources: of a hidden tool nothing, of a denied
    tool the denial and what it does to the run."""
    if policy.hidden_by is not None:
        return None
    if policy.decision is Verdict.DENY:
        return ToolPolicy(decision=policy.decision, on_block=policy.on_block)
    return replace(policy, sources={})


def _without(rules: ToolPolicies, statement: IdleStatement) -> ToolPolicies:
    if not statement.fields:
        return ToolPolicies(rules=tuple(each for each in rules.rules if each[0] != statement.pattern))
    absent: dict[str, Any] = dict.fromkeys(statement.fields)
    return ToolPolicies(
        rules=tuple(
            (pattern, replace(rule, **absent) if pattern == statement.pattern else rule)
            for pattern, rule in rules.rules
        )
    )
