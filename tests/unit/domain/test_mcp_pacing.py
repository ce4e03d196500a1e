"""When the next call, the next attempt and the next start may be: rate limit, backoff, restarts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import ServiceError
from domain.mcp.backoff import Backoff
from domain.mcp.restarts import RestartLimit, Restarts
from domain.rate_limit import CallSchedule, RateLimit

SECONDS = st.floats(min_value=0, max_value=10)
LIMITS = st.builds(RateLimit, calls=st.integers(1, 20), per_s=st.floats(min_value=0.1, max_value=100))
ROUNDING = 1e-6


@pytest.mark.requirement("B10")
def test_after_a_rest_so_many_calls_go_at_once_and_then_one_per_interval() -> None:
    schedule, waits = CallSchedule(limit=RateLimit(calls=3, per_s=6)), []
    for _ in range(5):
        waits.append(schedule.wait_s(100.0))
        schedule = schedule.taken(100.0)
    assert waits == [0.0, 0.0, 0.0, 2.0, 4.0]
    assert schedule.wait_s(106.0) == 0.0


@pytest.mark.requirement("B10")
@given(LIMITS, st.lists(SECONDS, min_size=1, max_size=60))
def test_no_stretch_of_time_has_more_calls_than_a_full_bucket_and_what_flows_in(
    limit: RateLimit, pauses: list[float]
) -> None:
    schedule, now, sent = CallSchedule(limit=limit), 0.0, []
    for pause_s in pauses:
        now += pause_s
        sent.append(now + schedule.wait_s(now))
        schedule = schedule.taken(now)
    assert sent == sorted(sent)
    for first, begin in enumerate(sent):
        for last in range(first, len(sent)):
            allowed = limit.calls + (sent[last] - begin) * limit.calls / limit.per_s
            assert last - first + 1 <= allowed + ROUNDING * len(sent)


@given(LIMITS, st.integers(1, 40))
def test_a_call_never_waits_longer_than_those_before_it_need(limit: RateLimit, calls: int) -> None:
    schedule = CallSchedule(limit=limit)
    for _ in range(calls):
        schedule = schedule.taken(0.0)
    needed_s = max(0.0, (calls + 1 - limit.calls) * limit.per_s / limit.calls)
    assert schedule.wait_s(0.0) == pytest.approx(needed_s)


@pytest.mark.parametrize("wrong", [{"calls": 0}, {"per_s": 0.0}, {"per_s": float("nan")}])
def test_a_rate_of_nothing_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ServiceError) as raised:
        RateLimit(**{"calls": 1, "per_s": 1.0, **wrong})  # type: ignore[arg-type]
    assert raised.value.code == "rate_limit_invalid"


@pytest.mark.requirement("B7")
def test_the_bound_of_the_pause_doubles_up_to_the_longest() -> None:
    backoff = Backoff(first_s=0.5, longest_s=60)
    assert [backoff.bound_s(attempt) for attempt in (0, 1, 2, 6, 7, 10_000)] == [0.5, 1.0, 2.0, 32.0, 60.0, 60.0]


@given(st.integers(0, 1_000), st.floats(min_value=0, max_value=1))
def test_the_pause_lies_anywhere_below_its_bound(attempt: int, fraction: float) -> None:
    backoff = Backoff()
    assert 0 <= backoff.pause_s(attempt, fraction) <= backoff.bound_s(attempt)
    assert (backoff.pause_s(attempt, 0.0), backoff.pause_s(attempt, 1.0)) == (0.0, backoff.bound_s(attempt))


LIMIT = RestartLimit(crashes=3, stable_s=60, pause_s=600)


def crashed(*lives_s: float) -> Restarts:
    restarts = Restarts(limit=LIMIT)
    for lived_s in lives_s:
        restarts = restarts.crashed(lived_s=lived_s, now=1000.0)
    return restarts


@pytest.mark.requirement("B3", "B7")
def test_a_server_that_crashes_again_and_again_is_left_alone_for_a_while() -> None:
    assert crashed(1, 1).pause_left_s(1000.0) == 0.0
    assert crashed(1, 1, 1).pause_left_s(1000.0) == 600.0
    assert crashed(1, 1, 1).pause_left_s(1600.0) == 0.0


def test_after_the_pause_one_more_crash_is_enough() -> None:
    assert crashed(1, 1, 1).crashed(lived_s=1, now=1600.0).pause_left_s(1600.0) == 600.0


def test_a_long_life_makes_good_the_crashes_before_it() -> None:
    assert crashed(1, 1, 61, 1).pause_left_s(1000.0) == 0.0
    assert crashed(1, 1, 1, 61, 1).pause_left_s(1000.0) == 0.0
