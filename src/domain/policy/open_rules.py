"""Finds rules with a condition that allow what is allowed without them, too."""

from collections.abc import Iterator, Sequence

from domain.policy.layers import PolicyLayer, PolicyLayers
from domain.policy.rules import ToolPolicies, Verdict
from domain.policy.selection import fitting

MAX_COMPARED = 2_000_000
"""Rules times rules and tools: a microsecond each."""


def open_permissions(
    layers: PolicyLayers, rules: ToolPolicies, names: Sequence[str], layer: PolicyLayer
) -> Iterator[str]:
    """Patterns of rules that allow under a condition, where a tool is allowed while the condition
    does not hold: no rule without a condition denies it or requires approval. `rules` are those of
    `layer`; `layers` has rules without conditions only. What cannot be compared within MAX_COMPARED
    steps is left out."""
    always = rules.unconditional()
    layers = layers.with_rules(layer, always)
    left = MAX_COMPARED
    for pattern, rule in rules.rules:
        if rule.when is None or rule.decision is not Verdict.ALLOW:
            continue
        left -= len(rules.rules) + len(names)
        if left < 0:
            return
        under_it = layers.with_rules(layer, ToolPolicies(rules=(*always.rules, (pattern, rule))))
        for name in fitting(pattern, names):
            selected = {each for at, found in under_it.layers_for(name) if at is layer for each, _ in found}
            if pattern in selected and layers.resolve(name).decision is Verdict.ALLOW:
                yield pattern
                break
