"""What an agent's rules say without effect, and that it is without effect indeed."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.policy.idle_rules import IdleReason, IdleStatement, idle_statements
from domain.policy.layers import PolicyLayer, PolicyLayers, Source, ToolPolicy
from domain.policy.rule_json import rule_from_json, rule_to_json
from domain.policy.rules import OnBlock, ToolPolicies, ToolRule, Verdict
from tests.processor_time import processor_time

pytestmark = pytest.mark.requirement("C2")

NAMES = ("mcp__git__log", "mcp__git__push", "send_email")
ALLOW, ASK = ToolRule(decision=Verdict.ALLOW), ToolRule(decision=Verdict.REQUIRE_APPROVAL)


def rules(*said: tuple[str, ToolRule]) -> ToolPolicies:
    return ToolPolicies(rules=said)


def idle(
    agent: ToolPolicies,
    *,
    organization: ToolPolicies | None = None,
    allowlist: tuple[str, ...] | None = None,
) -> tuple[IdleStatement, ...]:
    layers = PolicyLayers(organization=organization or rules(), agent=agent, organization_allowlist=allowlist)
    return idle_statements(layers, agent, NAMES)


def test_a_rule_that_decides_something_is_not_idle() -> None:
    assert idle(rules(("mcp__git__*", ASK), ("mcp__git__push", ToolRule(max_calls=1)))) == ()


def test_a_rule_without_a_tool_is_idle() -> None:
    assert idle(rules(("mcp__gti__*", ASK))) == (IdleStatement(pattern="mcp__gti__*", reason=IdleReason.NO_TOOL),)


def test_a_rule_to_which_more_specific_ones_leave_nothing_is_idle() -> None:
    said = rules(("mcp__git__*", ASK), ("mcp__git__log", ALLOW), ("mcp__git__push", ALLOW))
    [statement] = idle(said)
    assert (statement.pattern, statement.reason) == ("mcp__git__*", IdleReason.MORE_SPECIFIC)
    assert {source.pattern for source in statement.by} == {"mcp__git__log", "mcp__git__push"}


def test_a_rule_for_tools_that_an_allowlist_hides_is_idle() -> None:
    [statement] = idle(rules(("mcp__git__*", ASK)), allowlist=("send_email",))
    assert (statement.reason, statement.by) == (IdleReason.HIDDEN, (Source(layer=PolicyLayer.ORGANIZATION),))


def test_words_that_the_organization_has_said_as_strictly_are_idle_and_others_of_the_rule_are_not() -> None:
    organization = rules(("mcp__*", replace(ASK, on_block=OnBlock.HALT)))
    said = ToolRule(decision=Verdict.ALLOW, on_block=OnBlock.HALT, max_calls=3)
    [statement] = idle(rules(("mcp__git__push", said)), organization=organization)
    assert (statement.reason, statement.fields) == (IdleReason.ALREADY_SAID, ("decision", "on_block"))
    assert statement.by == (Source(layer=PolicyLayer.ORGANIZATION, pattern="mcp__*"),)


def test_what_is_said_of_a_tool_that_is_denied_has_no_effect_but_for_the_denial_itself() -> None:
    said = ToolRule(decision=Verdict.REQUIRE_APPROVAL, timeout_s=20, on_block=OnBlock.HALT)
    denied = ("*push*", ToolRule(decision=Verdict.DENY))
    statements = idle(rules(denied, ("mcp__git__push", said)))
    assert [(statement.reason, statement.fields) for statement in statements] == [
        (IdleReason.ALREADY_SAID, ("decision",)),
        (IdleReason.DENIED, ("timeout_s",)),
    ]
    assert {statement.by for statement in statements} == {(Source(layer=PolicyLayer.AGENT, pattern="*push*"),)}


def test_a_permission_that_beats_a_denial_is_not_idle_though_a_more_specific_rule_holds_for_the_tool() -> None:
    said = rules(("*", ToolRule(decision=Verdict.DENY)), ("send_*", ALLOW), ("send_email", ToolRule(max_calls=1)))
    assert [statement.pattern for statement in idle(said)] == []


def test_a_denial_by_which_a_rule_applies_is_not_idle_where_the_rule_says_what_becomes_of_the_run() -> None:
    organization = rules(("mcp__git__*", ToolRule(decision=Verdict.DENY)))
    denied = ("mcp__*", ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT))
    assert idle(rules(denied, ("mcp__git__*", ToolRule(max_calls=1))), organization=organization) == (
        IdleStatement(
            pattern="mcp__git__*",
            reason=IdleReason.DENIED,
            fields=("max_calls",),
            by=(Source(layer=PolicyLayer.ORGANIZATION, pattern="mcp__git__*"),),
        ),
    )


def test_a_denial_that_hides_one_which_halts_is_not_idle() -> None:
    organization = rules(("mcp__git__*", ToolRule(decision=Verdict.DENY)))
    halting = ("mcp__*", ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT))
    agent = rules(halting, ("mcp__git__*", ToolRule(decision=Verdict.DENY)))
    assert [one.pattern for one in idle(agent, organization=organization)] == ["mcp__*"]


def test_what_an_overridable_rule_of_the_organization_says_may_be_replaced() -> None:
    organization = rules(("*", replace(ASK, overridable=True)))
    assert idle(rules(("send_email", ALLOW)), organization=organization) == ()


PATTERNS = st.sampled_from(("*", "mcp__*", "mcp__git__*", "mcp__*__log", "mcp__git__push", "send_email", "nothing"))
RULES = st.builds(
    ToolRule,
    decision=st.none() | st.sampled_from(Verdict),
    on_block=st.none() | st.sampled_from(OnBlock),
    denied_params=st.none() | st.sampled_from((("a",), ("a", "b"), ())),
    max_calls=st.none() | st.integers(1, 3),
    idempotent=st.none() | st.booleans(),
)
POLICIES = st.dictionaries(PATTERNS, RULES, max_size=4).map(lambda said: ToolPolicies(rules=tuple(said.items())))
ALLOWLISTS = st.none() | st.sampled_from((("*",), ("mcp__*",), ("send_*",), ()))


@given(POLICIES, POLICIES, ALLOWLISTS, st.booleans())
def test_what_is_said_to_be_idle_can_be_left_out(
    organization: ToolPolicies, agent: ToolPolicies, allowlist: tuple[str, ...] | None, overridable: bool
) -> None:
    loose = ToolPolicies(
        rules=tuple((name, replace(rule, overridable=overridable)) for name, rule in organization.rules)
    )

    def outcome(said: ToolPolicies) -> list[ToolPolicy | None]:
        layers = PolicyLayers(organization=loose, agent=said, organization_allowlist=allowlist)
        policies = [layers.resolve(name) for name in NAMES]
        return [None if policy.hidden_by else _effect(policy) for policy in policies]

    layers = PolicyLayers(organization=loose, agent=agent, organization_allowlist=allowlist)
    for statement in idle_statements(layers, agent, NAMES):
        assert outcome(agent) == outcome(_without(agent, statement))


def _effect(policy: ToolPolicy) -> ToolPolicy:
    """What holds, wherever it comes from. Of a denied tool: the denial, and what it does to the
    run."""
    if policy.decision is Verdict.DENY:
        return ToolPolicy(decision=policy.decision, on_block=policy.on_block)
    return replace(policy, sources={})


def _without(said: ToolPolicies, statement: IdleStatement) -> ToolPolicies:
    def left(rule: ToolRule) -> ToolRule | None:
        said_besides = {name: value for name, value in rule_to_json(rule).items() if name not in statement.fields}
        return rule_from_json(said_besides) if statement.fields else None

    kept = ((name, left(rule) if name == statement.pattern else rule) for name, rule in said.rules)
    return ToolPolicies(rules=tuple((name, rule) for name, rule in kept if rule is not None))


@pytest.mark.requirement("A9")
@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ([f"{'*a' * 30}{number}" for number in range(900)], ["internet_search"] * 20),
        ([f"{'*a' * 30}{'*' * number}" for number in range(60)], [f"{'a' * 50}{number}" for number in range(500)]),
    ],
    ids=["no tool", "all tools"],
)
def test_globs_made_to_take_long_are_looked_at_only_so_far(patterns: list[str], names: list[str]) -> None:
    policies = ToolPolicies(rules=tuple((pattern, ToolRule(max_calls=3)) for pattern in patterns))
    layers = PolicyLayers(agent=policies)
    with processor_time(10):  # without a bound it took minutes
        idle_statements(layers, policies, names)
