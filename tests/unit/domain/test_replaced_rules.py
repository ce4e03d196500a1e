"""What a more exact rule drops of a glob's without a word."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.policy.layers import PolicyLayers
from domain.policy.replaced_rules import ReplacedStatement, replaced_statements
from domain.policy.rules import OnBlock, ToolPolicies, ToolRule, Verdict

pytestmark = pytest.mark.requirement("C2")

LOG, PUSH = "mcp__git__log", "mcp__git__push"
ASK = ToolRule(decision=Verdict.REQUIRE_APPROVAL, denied_params=("force",))


def replaced(*said: tuple[str, ToolRule], names: tuple[str, ...] = (LOG, PUSH)) -> tuple[ReplacedStatement, ...]:
    return replaced_statements(ToolPolicies(rules=said), names)


def test_an_approval_that_a_name_with_other_words_drops_is_told() -> None:
    assert replaced(("mcp__*", ASK), (LOG, ToolRule(max_results=20))) == (
        ReplacedStatement(pattern="mcp__*", by=(LOG,), fields=("decision", "denied_params"), name=LOG),
    )


def test_a_name_that_no_known_tool_has_is_looked_at_too() -> None:
    [statement] = replaced(("mcp__*", ASK), (LOG, ToolRule(max_results=20)), names=())
    assert statement.name == LOG


def test_what_the_more_exact_rule_says_itself_is_not_told() -> None:
    said = ToolRule(decision=Verdict.ALLOW, denied_params=())
    assert replaced(("mcp__*", ASK), (LOG, said)) == ()


def test_a_denial_is_dropped_by_no_rule_but_one_that_permits_which_is_meant_so() -> None:
    halting = ToolRule(decision=Verdict.DENY, on_block=OnBlock.HALT)
    assert replaced(("*push*", halting), ("mcp__git__*", ToolRule(timeout_s=20))) == ()
    assert replaced(("*push*", halting), (PUSH, ToolRule(decision=Verdict.ALLOW))) == ()


RULES = st.builds(
    ToolRule,
    decision=st.none() | st.sampled_from(Verdict),
    denied_params=st.none() | st.just(("a",)),
    max_calls=st.none() | st.integers(1, 3),
    timeout_s=st.none() | st.integers(1, 3),
)
PATTERNS = st.sampled_from(("*", "mcp__*", "mcp__git__*", "*push*", LOG, PUSH))


@given(st.dictionaries(PATTERNS, RULES, max_size=4))
def test_a_rule_of_which_nothing_is_replaced_holds_for_all_it_fits(said: dict[str, ToolRule]) -> None:
    policies = ToolPolicies(rules=tuple(said.items()))
    told = {(statement.pattern, field) for statement in replaced_statements(policies, ()) for field in statement.fields}
    policy = PolicyLayers(agent=policies).resolve(LOG)
    for pattern in {"*", "mcp__*", "mcp__git__*", LOG} & said.keys():
        most = said[pattern].max_calls
        if most is not None and LOG in said and (pattern, "max_calls") not in told:
            assert policy.max_calls is not None
