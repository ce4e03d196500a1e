"""Attributes lost workers to runs: which of the runs that a worker executed may have ended it."""

from collections.abc import Iterable
from dataclasses import dataclass

from domain.ids import RunId, WorkerId


@dataclass(frozen=True, slots=True, kw_only=True)
class LostRun:
    """A run with an expired lease. `executing`: a call of the run was recorded and not settled.
    `suspect`: the run was already suspected of ending workers."""

    run_id: RunId
    worker_id: WorkerId
    executing: bool
    suspect: bool


def attributed(lost: Iterable[LostRun]) -> frozenset[RunId]:
    """The runs that a lost worker counts against.

    - Runs that waited for a model do not count if another run of the worker was executing a call.
    - With a suspect among the worker's runs, all of them count: the suspect may be innocent, and
      another run must become a suspect before the suspect is given up.
    """
    runs = tuple(lost)
    with_calls = {run.worker_id for run in runs if run.executing}
    with_suspects = {run.worker_id for run in runs if run.suspect}
    spared = with_calls - with_suspects
    return frozenset(run.run_id for run in runs if run.executing or run.worker_id not in spared)
