"""Sentences about the conditions of rules, for explanations."""

from collections.abc import Iterable

from application.tools.tool_standing import source_words
from domain.policy.condition import Circumstances
from domain.policy.layers import PolicyLayer, Source
from domain.policy.rules import ToolPolicies
from domain.policy.selection import fitting


def condition_sentences(
    name: str, rules: Iterable[tuple[PolicyLayer, ToolPolicies]], now: Circumstances
) -> tuple[str, ...]:
    """One sentence for each rule with a condition that fits the tool: whether it applies, and why
    not."""
    return tuple(
        _sentence(Source(layer=layer, pattern=pattern), rule.unmet(now))
        for layer, policies in rules
        for pattern, rule in policies.rules
        if rule.when is not None and next(fitting(pattern, (name,)), None) is not None
    )


def _sentence(source: Source, unmet: str | None) -> str:
    whose = source_words(source).removeprefix("by ")
    whose = whose[0].upper() + whose[1:]
    return f"{whose}: its condition holds." if unmet is None else f"{whose} does not apply: {unmet}."
