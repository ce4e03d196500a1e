"""Counts leases that were lost and runs that others' lost leases left behind."""

from datetime import datetime

from application.runs.ports import ClaimedRun, EndedAtClaim, RunLeases
from domain.ids import RunId, WorkerId
from domain.runs.lease import Lease
from infrastructure.metrics.instruments import Instruments


class MeteredRunLeases:
    """The `RunLeases` port, before an adapter of it."""

    def __init__(self, leases: RunLeases, *, instruments: Instruments) -> None:
        self._leases = leases
        self._instruments = instruments

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime
    ) -> ClaimedRun | EndedAtClaim | None:
        """Take a run."""
        claimed = await self._leases.claim(run_id, worker_id, lease_s=lease_s, at=at)
        if isinstance(claimed, ClaimedRun) and claimed.run.lapses:
            self._instruments.runs_recovered.inc()
        return claimed

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        """Extend all leases."""
        lost = await self._leases.renew(worker_id, leases, lease_s=lease_s, at=at)
        if lost:
            self._instruments.leases_lost.inc(len(lost))
        return lost

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        """Return a run to the queue."""
        return await self._leases.hand_back(lease, active_s=active_s, at=at)

    async def recoverable(self, *, at: datetime, limit: int) -> tuple[RunId, ...]:
        """Runs to submit again."""
        return await self._leases.recoverable(at=at, limit=limit)
