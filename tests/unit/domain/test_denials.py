"""Denials within a layer of policy: they win over every rule that does not permit the tool by a
more exact name."""

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.json_value import JsonObject
from domain.policy.decision import Decision, DecisionReason, decide
from domain.policy.layers import PolicyLayer, PolicyLayers, Source
from domain.policy.rules import OnBlock, ToolPolicies, ToolRule, Verdict

TOOL = "mcp__git__log"
ALLOW = ToolRule(decision=Verdict.ALLOW)
ASK = ToolRule(decision=Verdict.REQUIRE_APPROVAL)
DENY = ToolRule(decision=Verdict.DENY)


def either(pattern: str, rule: ToolRule, *more: tuple[str, ToolRule]) -> ToolPolicies:
    return ToolPolicies(rules=((pattern, rule), *more))


def decided(
    organization: ToolPolicies | None = None, agent: ToolPolicies | None = None, arguments: JsonObject | None = None
) -> Decision:
    none = ToolPolicies()
    return decide(PolicyLayers(organization=organization or none, agent=agent or none), TOOL, arguments or {})


@pytest.mark.requirement("C2")
@pytest.mark.parametrize(
    ("rules", "denied_by"),
    [
        (either("*log*", DENY, ("mcp__git__*", ToolRule(timeout_s=20))), "*log*"),
        (either("*log*", DENY, (TOOL, ToolRule(max_results=5))), "*log*"),
        (either("*log*", DENY, (TOOL, ASK)), "*log*"),
        (either("*log*", DENY, (TOOL, ToolRule(allowed_params=("path",), on_block=OnBlock.INFORM))), "*log*"),
        (either("*log*", DENY, ("mcp__*", ALLOW)), None),
        (either("*log*", DENY, ("mcp__*", ALLOW), (TOOL, ToolRule(max_calls=1))), None),
        (either("*log*", DENY, ("mcp__*", ALLOW), (TOOL, DENY)), TOOL),
        (either("*log*", DENY, ("*", ALLOW), (TOOL, ToolRule(max_calls=1))), "*log*"),
        (either("mcp__*", DENY, ("*log*", ALLOW)), "mcp__*"),
        (either("mcp__*", DENY, ("*log*", ALLOW), ("mcp__git__*", ToolRule(timeout_s=1))), "mcp__*"),
        (either("*", DENY, ("mcp__*", ALLOW), ("mcp__git__*", DENY), (TOOL, ToolRule(max_calls=1))), "mcp__git__*"),
    ],
)
def test_in_a_layer_a_denial_wins_unless_a_more_exact_rule_says_allow(
    rules: ToolPolicies, denied_by: str | None
) -> None:
    for layer, decision in (
        (PolicyLayer.AGENT, decided(None, rules)),
        (PolicyLayer.ORGANIZATION, decided(rules, None)),
    ):
        assert decision.verdict is (Verdict.ALLOW if denied_by is None else Verdict.DENY)
        if denied_by is not None:
            assert decision.source == Source(layer=layer, pattern=denied_by)


@pytest.mark.requirement("C2")
def test_a_denial_that_wins_halts_if_it_or_the_more_exact_rule_says_so() -> None:
    halting, mild = replace(DENY, on_block=OnBlock.HALT), ToolRule(on_block=OnBlock.INFORM, timeout_s=20)
    assert decided(None, either("*log*", halting, (TOOL, mild))).halts
    assert decided(None, either("*log*", DENY, (TOOL, ToolRule(on_block=OnBlock.HALT)))).halts
    assert not decided(None, either("*log*", DENY, (TOOL, mild))).halts
    assert not decided(None, either("*log*", halting, (TOOL, replace(DENY, on_block=OnBlock.INFORM)))).halts


@pytest.mark.requirement("C2")
def test_what_else_both_rules_say_holds_once_an_agent_overrides_the_denial() -> None:
    organization = either(
        "*log*",
        ToolRule(decision=Verdict.DENY, max_calls=9, denied_params=("force",), overridable=True),
        (TOOL, ToolRule(timeout_s=20, max_calls=3, allowed_params=("force", "path"), max_results=7)),
    )
    decision = decided(organization, either(TOOL, ALLOW))
    assert (decision.verdict, decision.source.layer) == (Verdict.ALLOW, PolicyLayer.AGENT)
    assert (decision.policy.timeout_s, decision.policy.max_calls, decision.policy.max_results) == (20, 3, 7)
    assert (
        decided(organization, either(TOOL, ALLOW), arguments={"force": True}).reason is DecisionReason.PARAMETER_DENIED
    )


names = st.sampled_from([TOOL, "mcp__git__push", "mcp__files__read", "code_execution"])
patterns = st.sampled_from([TOOL, "mcp__*", "mcp__git__*", "*", "mcp__git__l*", "mcp__git__?og", "*__log", "code_*"])
rules = st.builds(
    ToolRule,
    decision=st.none() | st.sampled_from(Verdict),
    on_block=st.none() | st.sampled_from(OnBlock),
    denied_params=st.none() | st.just(("a",)),
    max_calls=st.none() | st.integers(1, 3),
    timeout_s=st.none() | st.integers(1, 3),
    overridable=st.booleans(),
)
layers = st.dictionaries(patterns, rules, max_size=5).map(lambda found: ToolPolicies(rules=tuple(found.items())))


@pytest.mark.requirement("C2", "S5")
@given(written=layers, pattern=patterns, rule=rules, name=names)
def test_no_rule_without_an_allow_turns_a_denied_name_into_an_allowed_one(
    written: ToolPolicies, pattern: str, rule: ToolRule, name: str
) -> None:
    others = tuple(said for said in written.rules if said[0] != pattern)
    quiet = replace(rule, decision=None) if rule.decision is Verdict.ALLOW else rule
    less, more = ToolPolicies(rules=others), ToolPolicies(rules=(*others, (pattern, quiet)))
    for before, after in (
        (PolicyLayers(agent=less), PolicyLayers(agent=more)),
        (PolicyLayers(organization=less), PolicyLayers(organization=more)),
    ):
        if decide(before, name, {}).verdict is Verdict.DENY:
            assert decide(after, name, {}).verdict is Verdict.DENY


def exactness(pattern: str) -> float:
    wild = [place for place in map(pattern.find, "*?[") if place >= 0]
    return min(wild) if wild else float("inf")


@pytest.mark.requirement("C2")
@given(written=layers, name=names)
def test_a_name_is_denied_by_a_denial_that_no_more_exact_rule_permits(written: ToolPolicies, name: str) -> None:
    fitting = [(pattern, rule) for pattern, rule in written.rules if fnmatchcase(name, pattern)]
    permitted = [exactness(pattern) for pattern, rule in fitting if rule.decision is Verdict.ALLOW]
    denied = [exactness(pattern) for pattern, rule in fitting if rule.decision is Verdict.DENY]
    holds = max(denied, default=-1) >= max(permitted, default=-1) and denied != []
    assert (decide(PolicyLayers(agent=written), name, {}).verdict is Verdict.DENY) is holds
