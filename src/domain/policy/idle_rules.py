"""What an agent's rules say without effect: rules that hold for no tool, and words that another layer has said already."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import StrEnum

from domain.policy.layers import PolicyLayer, PolicyLayers, Source
from domain.policy.rules import ToolPolicies, ToolRule
from domain.policy.selection import fitting


class IdleReason(StrEnum):
    """Why something is without effect."""

    NO_TOOL = "no_tool"
    """No tool has such a name."""
    MORE_SPECIFIC = "more_specific"
    """Of each tool it fits, a more specific rule of the agent holds instead."""
    HIDDEN = "hidden"
    """Each tool it holds for is left out by an allowlist."""
    ALREADY_SAID = "already_said"
    """For each tool it holds for, others say the same or something stricter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleStatement:
    """The rule `pattern` of an agent, or of it `fields` alone, changes nothing; `by` are those that decide instead."""

    pattern: str
    reason: IdleReason
    fields: tuple[str, ...] = ()
    by: tuple[Source, ...] = ()


def idle_statements(layers: PolicyLayers, rules: ToolPolicies, names: Sequence[str]) -> tuple[IdleStatement, ...]:
    """What of `rules`, the agent's in `layers`, has no effect on the tools `names`; in the order of the rules."""
    holds: dict[str, list[str]] = {pattern: [] for pattern, _ in rules.rules}
    for name in names:
        for layer, selected in layers.said(name):
            if layer is PolicyLayer.AGENT:
                for pattern, _ in selected:
                    holds[pattern].append(name)
    return tuple(
        statement for pattern, rule in rules.rules for statement in _idle(layers, pattern, rule, holds[pattern], names)
    )


def _idle(
    layers: PolicyLayers, pattern: str, rule: ToolRule, held: Sequence[str], names: Sequence[str]
) -> list[IdleStatement]:
    if not held:
        fits = tuple(fitting(pattern, names))
        if not fits:
            return [IdleStatement(pattern=pattern, reason=IdleReason.NO_TOOL)]
        others = dict.fromkeys(
            Source(layer=layer, pattern=other)
            for name in fits
            for layer, selected in layers.said(name)
            if layer is PolicyLayer.AGENT
            for other, _ in selected
        )
        return [IdleStatement(pattern=pattern, reason=IdleReason.MORE_SPECIFIC, by=tuple(others))]
    visible = [name for name in held if layers.hidden_by(name) is None]
    if not visible:
        hiding = dict.fromkeys(layer for name in held if (layer := layers.hidden_by(name)) is not None)
        by = tuple(Source(layer=layer) for layer in hiding)
        return [IdleStatement(pattern=pattern, reason=IdleReason.HIDDEN, by=by)]
    return _already_said(layers, pattern, rule, visible)


def _already_said(layers: PolicyLayers, pattern: str, rule: ToolRule, names: Sequence[str]) -> list[IdleStatement]:
    own = Source(layer=PolicyLayer.AGENT, pattern=pattern)
    by_others: dict[tuple[Source, ...], list[str]] = {}
    policies = [layers.resolve(name) for name in names]
    for field in fields(rule):
        if field.name == "overridable" or getattr(rule, field.name) is None:
            continue
        deciding = dict.fromkeys(source for policy in policies for source in policy.sources.get(field.name, ()))
        if own not in deciding:
            by_others.setdefault(tuple(deciding), []).append(field.name)
    return [
        IdleStatement(pattern=pattern, reason=IdleReason.ALREADY_SAID, fields=tuple(said), by=by)
        for by, said in by_others.items()
    ]
