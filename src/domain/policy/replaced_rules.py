"""Finds fields of rules that another rule of the same layer replaces: a more specific rule replaces
a less specific one as a whole."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from domain.policy.rules import ToolPolicies, ToolRule, Verdict
from domain.policy.selection import RuleSelection, Selected, fitting, is_glob


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedStatement:
    """`fields` of the rule `pattern` do not apply to `name` (and perhaps to others), because the
    rules in `by` do not repeat them."""

    pattern: str
    by: tuple[str, ...]
    fields: tuple[str, ...]
    name: str


def replaced_statements(rules: ToolPolicies, names: Iterable[str]) -> tuple[ReplacedStatement, ...]:
    """The fields that a more specific rule of the layer drops, with one example tool for each pair
    of rules.

    Exact names in the rules count as tools. A denial that a more specific rule permits is not
    reported: it is intended.
    """
    selection = RuleSelection(rules)
    everything = sorted({*names, *(pattern for pattern, _ in rules.rules if not is_glob(pattern))})
    selected: dict[str, Selected] = {}
    found: dict[tuple[str, tuple[str, ...]], ReplacedStatement] = {}
    for pattern, rule in rules.rules:
        stated = _stated(rule)
        for name in fitting(pattern, everything) if is_glob(pattern) else ():
            if name not in selected:
                selected[name] = selection.of(name)
            by = tuple(other for other, _ in selected[name] if other != pattern)
            lost = stated.difference(*(_stated(other) for _, other in selected[name]))
            if lost and (pattern, by) not in found:
                in_order = tuple(field.name for field in fields(rule) if field.name in lost)
                found[pattern, by] = ReplacedStatement(pattern=pattern, by=by, fields=in_order, name=name)
    return tuple(found.values())


def _stated(rule: ToolRule) -> frozenset[str]:
    """The fields that a rule sets; for a denial without `on_block`."""
    stated = {field.name for field in fields(rule) if getattr(rule, field.name) is not None} - {"overridable", "when"}
    if rule.decision is Verdict.DENY:
        stated -= {"on_block"}
    return frozenset(stated)
