"""Limits: how layers narrow each other, and when a run has reached one."""

from dataclasses import fields
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ErrorKind, ServiceError
from domain.runs.limits import IncompleteReason, Limits, LimitSettings, Reserve
from domain.runs.usage import Usage

NOTHING = Reserve(tokens=0, cost_usd=Decimal(0))

COUNTS = st.none() | st.integers(min_value=1, max_value=10**9)
SECONDS = st.none() | st.floats(min_value=0.001, max_value=1e6)
MONEY = st.none() | st.decimals(min_value="0.0001", max_value="1000", places=4)
SETTINGS = st.builds(
    LimitSettings,
    max_turns=COUNTS,
    max_tool_calls=COUNTS,
    max_calls_per_turn=COUNTS,
    max_tokens=COUNTS,
    max_cost_usd=MONEY,
    context_tokens=COUNTS,
    timeout_s=SECONDS,
    turn_tool_timeout_s=SECONDS,
    tool_timeout_s=SECONDS,
    model_attempts=COUNTS,
    model_retry_s=SECONDS,
)


@pytest.mark.requirement("A7")
@given(one=SETTINGS, other=SETTINGS)
def test_the_tighter_of_two_layers_holds_limit_by_limit_whichever_comes_first(
    one: LimitSettings, other: LimitSettings
) -> None:
    narrowed = one.narrowed_by(other)
    assert narrowed == other.narrowed_by(one)
    for field in fields(LimitSettings):
        stated = [value for layer in (one, other) if (value := getattr(layer, field.name)) is not None]
        assert getattr(narrowed, field.name) == (min(stated) if stated else None), field.name


@pytest.mark.requirement("A7")
@given(settings=SETTINGS)
def test_a_layer_that_says_nothing_changes_nothing(settings: LimitSettings) -> None:
    assert settings.narrowed_by(LimitSettings()) == settings


@pytest.mark.requirement("A7")
@given(settings=SETTINGS)
def test_built_in_defaults_fill_what_the_layers_leave_open(settings: LimitSettings) -> None:
    limits = Limits.of(settings)
    for field in fields(LimitSettings):
        stated = getattr(settings, field.name)
        assert getattr(limits, field.name) == (getattr(Limits(), field.name) if stated is None else stated), field.name


@pytest.mark.requirement("A7")
def test_the_built_in_limits_are_the_documented_ones() -> None:
    limits = Limits()
    assert (limits.max_turns, limits.timeout_s, limits.turn_tool_timeout_s, limits.tool_timeout_s) == (
        10,
        600.0,
        120.0,
        30.0,
    )
    assert (limits.max_calls_per_turn, limits.model_attempts, limits.model_retry_s) == (64, 20, 180.0)
    assert (limits.max_tool_calls, limits.max_tokens, limits.max_cost_usd) == (None, None, None)


def test_limits_that_are_not_positive_are_refused_all_at_once_with_their_paths() -> None:
    with pytest.raises(ServiceError) as refused:
        LimitSettings(max_turns=0, max_cost_usd=Decimal(-1), timeout_s=-0.5, max_tokens=5)
    assert (refused.value.code, refused.value.kind) == ("limits_invalid", ErrorKind.INVALID)
    assert [violation.path for violation in refused.value.violations] == [
        "limits.max_turns",
        "limits.max_cost_usd",
        "limits.timeout_s",
    ]


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(("turns", "has_more"), [(0, True), (2, True), (3, False), (4, False)])
def test_turns_are_left_until_as_many_as_allowed_are_over(turns: int, has_more: bool) -> None:
    assert Limits(max_turns=3).has_turns_left(Usage(turns=turns)) is has_more


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(
    ("usage", "active_s", "reserve", "reason"),
    [
        (Usage(), 0.0, NOTHING, None),
        (Usage(turns=3), 0.0, NOTHING, None),
        (Usage(tool_calls=6), 0.0, NOTHING, None),
        (Usage(input_tokens=600, output_tokens=400), 0.0, NOTHING, None),
        (Usage(input_tokens=601, output_tokens=400), 0.0, NOTHING, IncompleteReason.MAX_TOKENS),
        (Usage(input_tokens=800), 0.0, Reserve(tokens=100, cost_usd=Decimal(0)), None),
        (Usage(input_tokens=801), 0.0, Reserve(tokens=100, cost_usd=Decimal(0)), IncompleteReason.MAX_TOKENS),
        (Usage(cost_usd=Decimal("0.5")), 0.0, NOTHING, None),
        (Usage(cost_usd=Decimal("0.51")), 0.0, NOTHING, IncompleteReason.MAX_COST),
        (Usage(cost_usd=Decimal("0.3")), 0.0, Reserve(tokens=0, cost_usd=Decimal("0.1")), None),
        (Usage(cost_usd=Decimal("0.31")), 0.0, Reserve(tokens=0, cost_usd=Decimal("0.1")), IncompleteReason.MAX_COST),
        (Usage(), 89.9, NOTHING, None),
        (Usage(), 90.0, NOTHING, IncompleteReason.TIMEOUT),
        (Usage(turns=3, tool_calls=9), 500.0, NOTHING, IncompleteReason.TIMEOUT),
    ],
)
def test_a_limit_is_reached_where_calls_another_turn_and_the_closing_one_would_not_fit(
    usage: Usage, active_s: float, reserve: Reserve, reason: IncompleteReason | None
) -> None:
    limits = Limits(max_turns=3, max_tool_calls=5, max_tokens=1000, max_cost_usd=Decimal("0.5"), timeout_s=100.0)
    assert limits.reached_by(usage, active_s=active_s, reserve=reserve) is reason


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(("made", "left"), [(0, 5), (4, 1), (5, 0), (6, 0)])
def test_the_limit_of_calls_forbids_calls_not_turns(made: int, left: int) -> None:
    assert Limits(max_tool_calls=5).tool_calls_left(Usage(tool_calls=made)) == left
    assert Limits().tool_calls_left(Usage(tool_calls=made)) is None


@pytest.mark.requirement("A7")
def test_what_is_not_limited_is_never_reached() -> None:
    usage = Usage(input_tokens=10**9, cost_usd=Decimal(10**6), tool_calls=10**6)
    reserve = Reserve(tokens=10**9, cost_usd=Decimal(10**6))
    assert Limits().reached_by(usage, active_s=0.0, reserve=reserve) is None
    assert Limits().allow_closing_turn(usage, active_s=0.0, reserve=reserve)


@pytest.mark.requirement("A7")
@pytest.mark.parametrize(
    ("usage", "active_s", "allowed"),
    [
        (Usage(input_tokens=900, cost_usd=Decimal("0.4")), 99.9, True),
        (Usage(input_tokens=901), 0.0, False),
        (Usage(cost_usd=Decimal("0.41")), 0.0, False),
        (Usage(), 100.0, False),
        (Usage(turns=50, tool_calls=50), 0.0, True),
    ],
)
def test_the_closing_turn_is_asked_for_only_where_it_fits_into_what_is_left(
    usage: Usage, active_s: float, allowed: bool
) -> None:
    limits = Limits(max_turns=3, max_tokens=1000, max_cost_usd=Decimal("0.5"), timeout_s=100.0)
    reserve = Reserve(tokens=100, cost_usd=Decimal("0.1"))
    assert limits.allow_closing_turn(usage, active_s=active_s, reserve=reserve) is allowed


@pytest.mark.requirement("A7")
@given(
    spent=st.integers(min_value=0, max_value=2000),
    turn=st.integers(min_value=0, max_value=500),
    limit=st.integers(min_value=1, max_value=2000),
)
def test_after_a_turn_that_kept_to_its_estimate_the_closing_turn_still_fits(spent: int, turn: int, limit: int) -> None:
    limits = Limits(max_tokens=limit)
    reserve = Reserve(tokens=turn, cost_usd=Decimal(0))
    if limits.reached_by(Usage(input_tokens=spent), active_s=0.0, reserve=reserve) is None:
        assert limits.allow_closing_turn(Usage(input_tokens=spent + turn), active_s=0.0, reserve=reserve)


@pytest.mark.requirement("A7")
@given(timeout_s=st.floats(min_value=0.001, max_value=1e6))
def test_time_is_kept_back_for_the_closing_turn_but_never_much_of_it(timeout_s: float) -> None:
    kept = Limits(timeout_s=timeout_s).closing_time_s
    assert 0 < kept <= 30.0
    assert kept <= timeout_s * 0.1
