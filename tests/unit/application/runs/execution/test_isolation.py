"""Isolation: one suspected run at a time, apart from other runs where that is possible."""

from dataclasses import replace

import pytest

from application.runs.execution.isolation import IDLE_WITHIN_S, Isolation
from tests.builders import RUN, a_run, a_run_id
from tests.doubles.surroundings import FixedClock


@pytest.mark.requirement("E4")
def test_one_suspect_at_a_time_has_the_place() -> None:
    isolation = Isolation(FixedClock())
    assert isolation.enter(RUN, others=0)
    assert not isolation.enter(a_run_id(2), others=0)
    isolation.leave(a_run_id(2))
    assert not isolation.enter(a_run_id(2), others=0), "another run does not free the place"
    isolation.leave(RUN)
    assert isolation.enter(a_run_id(2), others=0)


@pytest.mark.requirement("E4")
def test_a_suspect_waits_for_an_idle_worker_but_not_forever() -> None:
    clock = FixedClock()
    isolation = Isolation(clock)
    assert not isolation.enter(RUN, others=3)
    clock.advance(IDLE_WITHIN_S - 1)
    assert not isolation.enter(RUN, others=3)
    clock.advance(1)
    assert isolation.enter(RUN, others=3)


@pytest.mark.requirement("E4")
def test_of_suspects_that_come_together_the_one_with_the_fewest_lost_workers_has_the_place() -> None:
    isolation = Isolation(FixedClock())
    often, seldom = replace(a_run(), lapses=9), replace(a_run(a_run_id(2)), lapses=3)
    with isolation.candidate(often):
        with isolation.candidate(seldom):
            assert not isolation.enter(often.id, others=0)
            assert isolation.enter(seldom.id, others=0)
        isolation.leave(seldom.id)
        assert isolation.enter(often.id, others=0)
