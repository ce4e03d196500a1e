"""Admission: who has a place in the queue, and when to try again."""

from datetime import timedelta

import pytest

from domain.errors import ServiceError
from domain.runs.admission import QueuedRuns, UserBound, require_active_place, require_place
from tests.builders import START
from tests.people_builders import USER


@pytest.mark.requirement("K2")
@pytest.mark.parametrize(("waited_s", "retry_after_s"), [(0, "1"), (30, "3"), (10_000, "60")])
def test_a_refused_run_may_try_again_when_the_oldest_one_has_moved_up_by_a_place(
    waited_s: int, retry_after_s: str
) -> None:
    queued = QueuedRuns(count=10, since=START - timedelta(seconds=waited_s))
    with pytest.raises(ServiceError) as full:
        require_place("agent", 10, queued, at=START)
    assert full.value.extra == {"retry_after_s": retry_after_s, "position": "11", "limited": "agent"}


@pytest.mark.requirement("K2")
def test_a_run_below_the_bound_has_a_place() -> None:
    require_place("agent", 1, QueuedRuns(count=0, since=None), at=START)


@pytest.mark.requirement("P2")
def test_a_user_below_the_bound_may_start_another_run() -> None:
    bound = UserBound(user_id=USER, max_active=2)
    require_active_place(bound, 1)
    with pytest.raises(ServiceError) as full:
        require_active_place(bound, 2)
    assert (full.value.code, full.value.extra) == ("user_runs_full", {"retry_after_s": "5", "limited": "user"})
