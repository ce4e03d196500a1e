"""Counts lost leases, and runs that were recovered from lost leases."""

from datetime import datetime

from application.runs.ports import ClaimedRun, EndedAtClaim, RunLeases
from domain.ids import RunId, WorkerId
from domain.runs.claiming import Suspected
from domain.runs.lease import Lease
from infrastructure.metrics.instruments import Instruments


class MeteredRunLeases:
    def __init__(self, leases: RunLeases, *, instruments: Instruments) -> None:
        self._leases = leases
        self._instruments = instruments

    async def claim(
        self, run_id: RunId, worker_id: WorkerId, *, lease_s: float, at: datetime, takes_suspects: bool = True
    ) -> ClaimedRun | EndedAtClaim | Suspected | None:
        claimed = await self._leases.claim(run_id, worker_id, lease_s=lease_s, at=at, takes_suspects=takes_suspects)
        if isinstance(claimed, ClaimedRun) and claimed.run.lapses:
            self._instruments.runs_recovered.inc()
        return claimed

    async def renew(
        self, worker_id: WorkerId, leases: tuple[Lease, ...], *, lease_s: float, at: datetime
    ) -> frozenset[RunId]:
        lost = await self._leases.renew(worker_id, leases, lease_s=lease_s, at=at)
        if lost:
            self._instruments.leases_lost.inc(len(lost))
        return lost

    async def hand_back(self, lease: Lease, *, active_s: float, at: datetime) -> bool:
        return await self._leases.hand_back(lease, active_s=active_s, at=at)

    async def take_back(self, lease: Lease, *, seen_seq: int) -> bool:
        return await self._leases.take_back(lease, seen_seq=seen_seq)

    async def recoverable(self, *, at: datetime, limit: int, sole_owner: bool = False) -> tuple[RunId, ...]:
        return await self._leases.recoverable(at=at, limit=limit, sole_owner=sole_owner)
