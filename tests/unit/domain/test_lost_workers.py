"""Which runs a lost worker counts against."""

import pytest

from domain.ids import RunId, WorkerId
from domain.runs.lost_workers import LostRun, attributed


def lost(run_id: str, *, worker: str = "w", executing: bool = False, suspect: bool = False) -> LostRun:
    return LostRun(run_id=RunId(run_id), worker_id=WorkerId(worker), executing=executing, suspect=suspect)


@pytest.mark.requirement("E4")
@pytest.mark.parametrize(
    ("runs", "counted"),
    [
        ([lost("a"), lost("b")], {"a", "b"}),
        ([lost("a", executing=True), lost("b")], {"a"}),
        ([lost("a", executing=True), lost("b", executing=True), lost("c")], {"a", "b"}),
        ([lost("a", executing=True), lost("b", worker="other")], {"a", "b"}),
        ([lost("a", executing=True, suspect=True), lost("b")], {"a", "b"}),
        ([], set()),
    ],
    ids=["all-wait", "one-calls", "two-call", "workers-apart", "a-suspect-may-be-innocent", "none"],
)
def test_a_lost_worker_counts_against_the_runs_that_may_have_ended_it(runs: list[LostRun], counted: set[str]) -> None:
    assert attributed(runs) == counted
