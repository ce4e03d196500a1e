"""Submits runs or workflow runs again that no worker executes: runs lost by the queue, and runs of
lost workers."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from application.runs.ports import RunQueue
from application.system.ports import Clock
from domain.ids import RunId

SWEEP_EVERY_S = 2.0
_BATCH = 1_000
_ALL = 10_000_000


class Recoverable(Protocol):
    """The part of a lease store that finds runs without a worker."""

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> Sequence[str]:
        """Runs to submit again; expired leases are fenced."""


class RecoverRuns:
    """Rules:
    - Leases decide, not the queue.
    - For the only process of a database, every lease has expired when it starts. It submits all
      runs at once, however many: a queue in memory has none of them, and can order only those it
      has.
    """

    def __init__(self, *, leases: Recoverable, queue: RunQueue, clock: Clock) -> None:
        self._leases = leases
        self._queue = queue
        self._clock = clock

    async def execute(self, *, sole_owner: bool = False) -> int:
        """Submit executable runs and return their number. With `sole_owner`, valid leases are
        treated as expired."""
        limit = _ALL if sole_owner else _BATCH
        found = await self._leases.recoverable(at=self._clock.now(), limit=limit, sole_owner=sole_owner)
        await self._queue.submit(*(RunId(run_id) for run_id in found))
        return len(found)
