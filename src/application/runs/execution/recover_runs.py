"""Rings again for runs that nobody executes: queued ones whose doorbell was lost, and those of dead workers."""

from datetime import timedelta

from application.runs.ports import RunLeases, RunQueue
from application.system.ports import Clock

SWEEP_EVERY_S = 2.0
_BATCH = 1_000
_ALL_LEASES = timedelta(days=1)


class RecoverRuns:
    """Rules: the sweep trusts leases, not the queue; a process that owns the database alone knows at start that every lease
    is dead."""

    def __init__(self, *, leases: RunLeases, queue: RunQueue, clock: Clock) -> None:
        self._leases = leases
        self._queue = queue
        self._clock = clock

    async def execute(self, *, sole_owner: bool = False) -> int:
        """Submit what can be executed now; returns how many. With `sole_owner`, leases that have not lapsed count as dead."""
        at = self._clock.now() + (_ALL_LEASES if sole_owner else timedelta(0))
        found = await self._leases.recoverable(at=at, limit=_BATCH)
        await self._queue.submit(*found)
        return len(found)
