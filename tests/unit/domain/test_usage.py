"""Usage: running totals of a run."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.runs.usage import ModelUsage, Usage

TOKENS = st.integers(min_value=0, max_value=10**9)
TURNS = st.lists(
    st.builds(
        ModelUsage,
        input_tokens=TOKENS,
        output_tokens=TOKENS,
        cached_tokens=TOKENS,
        cost_usd=st.none() | st.decimals(min_value=0, max_value=100, places=8),
    ),
    max_size=20,
)


@pytest.mark.requirement("A10")
@given(turns=TURNS)
def test_the_totals_are_the_sums_of_the_turns(turns: list[ModelUsage]) -> None:
    usage = Usage()
    for spent in turns:
        usage = usage.after_turn(spent)
    assert usage == Usage(
        input_tokens=sum(spent.input_tokens for spent in turns),
        output_tokens=sum(spent.output_tokens for spent in turns),
        cached_tokens=sum(spent.cached_tokens for spent in turns),
        cost_usd=sum((spent.cost_usd for spent in turns if spent.cost_usd is not None), Decimal(0)),
        turns=len(turns),
    )


@pytest.mark.requirement("A10")
def test_cost_is_added_exactly() -> None:
    usage = Usage()
    for _ in range(10):
        usage = usage.after_turn(ModelUsage(cost_usd=Decimal("0.1")))
    assert usage.cost_usd == Decimal(1)


@pytest.mark.requirement("A10")
def test_an_unpriced_model_costs_nothing_but_its_tokens_count() -> None:
    usage = Usage(cost_usd=Decimal("0.5")).after_turn(ModelUsage(input_tokens=7, output_tokens=3))
    assert (usage.cost_usd, usage.tokens, usage.turns) == (Decimal("0.5"), 10, 1)


@pytest.mark.requirement("A10")
def test_tool_calls_are_counted_beside_the_turns() -> None:
    usage = Usage(tool_calls=2).after_turn(ModelUsage(input_tokens=7), tool_calls=3)
    assert usage == Usage(input_tokens=7, turns=1, tool_calls=5)


def test_cached_tokens_are_input_tokens_and_not_counted_twice() -> None:
    assert Usage(input_tokens=100, cached_tokens=90, output_tokens=10).tokens == 110
