"""The one place of a worker for a run that is suspected of ending workers."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from application.system.ports import Clock
from domain.ids import RunId
from domain.runs.run import Run

logger = logging.getLogger(__name__)

IDLE_WITHIN_S = 30.0
"""How long a suspect waits for a worker without other runs. After this time it is executed beside
them."""


class Isolation:
    """Rules:
    - A worker executes at most one suspected run at a time, so that a lost worker shows which one
      ends workers.
    - A suspect waits until the worker executes and claims no other run, at most `IDLE_WITHIN_S`.
    - Of suspects that are claimed together, the one with the fewest lost workers has the place:
      otherwise workers that are lost for another reason would count against the same run each time.
    - A run that stores a step is no longer suspected and frees the place.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._occupied_by: RunId | None = None
        self._waiting_since: float | None = None
        self._candidates: dict[RunId, int] = {}

    @contextmanager
    def candidate(self, run: Run) -> Iterator[None]:
        """A suspect that will `enter` in the block, once it knows about the worker's other runs."""
        self._candidates[run.id] = run.lapses
        try:
            yield
        finally:
            del self._candidates[run.id]

    def enter(self, run_id: RunId, *, others: int) -> bool:
        """Occupy the place. False if the suspect must wait. `others` is the number of runs that the
        worker executes or is claiming."""
        now = self._clock.monotonic()
        if self._occupied_by is not None or self._is_behind_another(run_id):
            return False
        if self._waiting_since is None:
            self._waiting_since = now
        if others and now - self._waiting_since < IDLE_WITHIN_S:
            return False
        self._waiting_since = None
        self._occupied_by = run_id
        logger.warning("run is suspected of ending workers; no other suspect is executed", extra={"run_id": run_id})
        return True

    def _is_behind_another(self, run_id: RunId) -> bool:
        lapses = self._candidates.get(run_id, 0)
        return any(fewer < lapses for fewer in self._candidates.values())

    def leave(self, run_id: RunId) -> None:
        """Free the place if this run has it."""
        if self._occupied_by == run_id:
            self._occupied_by = None
