"""The runs or workflow runs that this worker executes: leases are renewed together, and runs stopped or drained together."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from application.runs.execution.interruption import StopReason, StopSignal
from application.system.periodic import every
from application.system.ports import Clock
from domain.ids import WorkerId

logger = logging.getLogger(__name__)

_TRIES_BETWEEN = 10
"""How many tries a renewal that failed gets before the next one would have been due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """`lease_s` is how long a claim holds, `renew_every_s` how often it is extended, `margin_s` how long before its end a
    worker stops acting on it (clocks of machines drift apart)."""

    lease_s: float = 15.0
    renew_every_s: float = 5.0
    margin_s: float = 2.0


class Leased(Protocol):
    """A lease of any kind of run."""

    @property
    def run_id(self) -> str:
        """The run that may be executed."""
        ...

    @property
    def epoch(self) -> int:
        """The lease is valid while the stored run has this epoch."""
        ...


LeaseT = TypeVar("LeaseT", bound=Leased)
_RenewedT_contra = TypeVar("_RenewedT_contra", bound=Leased, contravariant=True)


class LeaseRenewal(Protocol[_RenewedT_contra]):
    """The part of a store of leases that renews them."""

    async def renew(
        self, worker_id: WorkerId, leases: tuple[_RenewedT_contra, ...], *, lease_s: float, at: datetime
    ) -> frozenset[str]:
        """Extend all leases; returns the runs whose lease is lost."""
        ...


@dataclass(slots=True, kw_only=True)
class _Held(Generic[LeaseT]):
    lease: LeaseT
    stop: StopSignal
    renewed_at: float


class ActiveRuns(Generic[LeaseT]):
    """Rules:
    - A lease is valid from before the statement that renews it.
    - A run whose lease is lost is stopped and writes nothing more.
    - When the store cannot be reached, leases expire by the clock, and nothing is sent on them.
    """

    def __init__(
        self, *, leases: LeaseRenewal[LeaseT], clock: Clock, worker_id: WorkerId, settings: LeaseSettings
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._settings = settings
        self._held: dict[str, _Held[LeaseT]] = {}
        self._draining = False
        self.worker_id = worker_id

    @property
    def lease_s(self) -> float:
        """How long a claim holds, in seconds."""
        return self._settings.lease_s

    @property
    def count(self) -> int:
        """How many runs this worker has in its hands."""
        return len(self._held)

    def add(self, lease: LeaseT, stop: StopSignal, *, claimed_at: float) -> Callable[[], bool]:
        """Keep a claimed run; returns the question whether its lease still holds. `claimed_at`: monotonic, before the
        claim."""
        held = _Held(lease=lease, stop=stop, renewed_at=claimed_at)
        self._held[lease.run_id] = held
        if self._draining:
            stop.drain()
        life_s = self._settings.lease_s - self._settings.margin_s
        return lambda: self._clock.monotonic() < held.renewed_at + life_s

    def remove(self, lease: LeaseT) -> None:
        """The run is out of this worker's hands."""
        held = self._held.get(lease.run_id)
        if held is not None and held.lease.epoch == lease.epoch:
            del self._held[lease.run_id]

    def drain(self) -> None:
        """Let every run finish the step in hand and hand itself back; runs added later as well."""
        self._draining = True
        for held in self._held.values():
            held.stop.drain()

    def stop_all(self) -> None:
        """Cut short what has not drained."""
        for held in self._held.values():
            held.stop.fire(StopReason.SHUTDOWN)

    async def keep(self) -> None:
        """Renew leases until cancelled. After a failure the next try comes sooner, so that leases outlast a database that
        is away for a moment."""
        seconds = self._settings.renew_every_s
        await every(seconds, self.renew, task="leases", retry_s=seconds / _TRIES_BETWEEN)

    async def renew(self) -> None:
        """Renew all leases once and stop the runs that were lost."""
        leases = tuple(held.lease for held in self._held.values())
        if not leases:
            return
        began = self._clock.monotonic()
        lost = await self._leases.renew(self.worker_id, leases, lease_s=self._settings.lease_s, at=self._clock.now())
        for lease in leases:
            held = self._held.get(lease.run_id)
            if held is None or held.lease.epoch != lease.epoch:
                continue
            if lease.run_id in lost:
                logger.warning("lease lost", extra={"run_id": lease.run_id, "worker_id": self.worker_id})
                held.stop.fire(StopReason.LEASE_LOST)
            else:
                held.renewed_at = began
