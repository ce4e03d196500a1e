"""The circuit breaker: it opens after failures in a row, lets one probe through after its pause,
and closes on an answer."""

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from domain.mcp.breaker import BreakerSettings, BreakerState, CallOutcome, CircuitBreaker

SETTINGS = BreakerSettings(failures=3, first_pause_s=10, longest_pause_s=40)
CLOSED = CircuitBreaker(settings=SETTINGS)
ANSWERED, FAILED, NEITHER = CallOutcome


def after(breaker: CircuitBreaker, *outcomes: CallOutcome, now: float = 0.0) -> CircuitBreaker:
    """One call after another, each with its outcome."""
    for outcome in outcomes:
        breaker = breaker.admitted(now)
        breaker = breaker.settled(breaker.epoch, outcome, now)
    return breaker


OPEN = after(CLOSED, FAILED, FAILED, FAILED)


@pytest.mark.requirement("B10")
def test_it_opens_at_the_last_of_so_many_failures_in_a_row() -> None:
    assert after(CLOSED, FAILED, FAILED).refused_for_s(0.0) is None
    assert (OPEN.state, OPEN.refused_for_s(0.0), OPEN.refused_for_s(4.0)) == (BreakerState.OPEN, 10.0, 6.0)


def test_an_answer_in_between_starts_the_count_anew_and_a_call_given_up_does_not() -> None:
    assert after(CLOSED, FAILED, FAILED, ANSWERED, FAILED, FAILED).state is BreakerState.CLOSED
    assert after(CLOSED, FAILED, FAILED, NEITHER, FAILED).state is BreakerState.OPEN


@pytest.mark.requirement("B10")
def test_after_its_pause_one_probe_goes_through_and_its_answer_closes_it() -> None:
    probing = OPEN.admitted(10.0)
    assert (probing.state, probing.refused_for_s(10.0)) == (BreakerState.HALF_OPEN, 0.0)
    with pytest.raises(ValueError, match="lets no call through"):
        probing.admitted(10.0)
    closed = probing.settled(probing.epoch, ANSWERED, 11.0)
    assert (closed.state, closed.failures, closed.openings) == (BreakerState.CLOSED, 0, 0)


def test_each_probe_that_fails_doubles_the_pause_up_to_the_longest() -> None:
    breaker, now, pauses = OPEN, 10.0, []
    for _ in range(4):
        breaker = after(breaker, FAILED, now=now)
        pause_s = breaker.refused_for_s(now)
        assert pause_s is not None
        pauses.append(pause_s)
        now += pause_s
    assert pauses == [20.0, 40.0, 40.0, 40.0]


def test_a_probe_that_was_given_up_leaves_the_next_call_to_be_the_probe() -> None:
    breaker = after(OPEN, NEITHER, now=10.0)
    assert (breaker.state, breaker.refused_for_s(10.0)) == (BreakerState.OPEN, None)


def test_what_was_sent_before_it_opened_neither_closes_nor_reopens_it() -> None:
    for outcome in CallOutcome:
        assert OPEN.settled(CLOSED.epoch, outcome, 5.0) is OPEN
        probing = OPEN.admitted(10.0)
        assert probing.settled(OPEN.epoch, outcome, 10.0) is probing


def test_a_sign_of_life_ends_the_pause_and_closes_nothing() -> None:
    hastened = OPEN.hastened(1.0)
    assert (hastened.state, hastened.refused_for_s(1.0)) == (BreakerState.OPEN, None)
    assert after(hastened, FAILED, now=1.0).refused_for_s(1.0) == 20.0
    assert CLOSED.hastened(1.0) is CLOSED


def test_resetting_closes_it_and_forgets_what_is_under_way() -> None:
    breaker = OPEN.reset()
    assert breaker.state is BreakerState.CLOSED
    assert breaker.settled(OPEN.epoch, FAILED, 0.0) is breaker


@pytest.mark.parametrize("wrong", [{"failures": 0}, {"first_pause_s": 0}, {"longest_pause_s": 5}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="circuit breaker"):
        replace(SETTINGS, **wrong)  # type: ignore[arg-type]


class BreakerStory(RuleBasedStateMachine):
    """Calls that overlap as they like, in any order, with any outcome."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.breaker = CLOSED
        self.under_way: list[int] = []
        self.probe: int | None = None

    @rule(seconds=st.floats(min_value=0, max_value=60))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def a_call_comes(self) -> None:
        state, refused_for_s = self.breaker.state, self.breaker.refused_for_s(self.now)
        if refused_for_s is not None:
            assert state is not BreakerState.CLOSED
            assert 0 <= refused_for_s <= SETTINGS.longest_pause_s
            return
        assert self.probe is None, "a second probe"
        self.breaker = self.breaker.admitted(self.now)
        if state is BreakerState.OPEN:
            self.probe = self.breaker.epoch
        else:
            self.under_way.append(self.breaker.epoch)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data(), outcome=st.sampled_from(CallOutcome))
    def a_call_ends(self, data: st.DataObject, outcome: CallOutcome) -> None:
        epoch = self.under_way.pop(data.draw(st.integers(0, len(self.under_way) - 1)))
        before = self.breaker
        self.breaker = before.settled(epoch, outcome, self.now)
        if before.state is not BreakerState.CLOSED:
            assert self.breaker is before
        elif self.breaker.state is not BreakerState.CLOSED:
            assert (outcome, before.failures) == (FAILED, SETTINGS.failures - 1)

    @precondition(lambda self: self.probe is not None)
    @rule(outcome=st.sampled_from(CallOutcome))
    def the_probe_ends(self, outcome: CallOutcome) -> None:
        assert self.probe is not None
        self.breaker = self.breaker.settled(self.probe, outcome, self.now)
        self.probe = None
        wanted = BreakerState.CLOSED if outcome is ANSWERED else BreakerState.OPEN
        assert self.breaker.state is wanted
        assert (self.breaker.refused_for_s(self.now) is None) == (outcome is not FAILED)

    @rule()
    def the_server_shows_signs_of_life(self) -> None:
        self.breaker = self.breaker.hastened(self.now)
        assert (self.breaker.refused_for_s(self.now) is None) == (self.probe is None)

    @rule()
    def it_is_reset(self) -> None:
        self.breaker = self.breaker.reset()
        self.probe = None
        assert self.breaker.refused_for_s(self.now) is None

    @invariant()
    def half_open_means_that_a_probe_is_under_way(self) -> None:
        assert (self.breaker.state is BreakerState.HALF_OPEN) == (self.probe is not None)

    @invariant()
    def failures_stay_below_the_limit(self) -> None:
        assert 0 <= self.breaker.failures < SETTINGS.failures


TestBreakerStory = BreakerStory.TestCase
