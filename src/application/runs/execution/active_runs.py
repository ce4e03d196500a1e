"""The runs or workflow runs that this worker executes: their leases are renewed, and they stop or
drain together."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from application.runs.execution.interruption import StopReason, StopSignal
from application.system.periodic import every
from application.system.ports import Clock
from domain.ids import WorkerId

logger = logging.getLogger(__name__)

_TRIES_BETWEEN = 10
"""Retries of a failed renewal before the next regular one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """`lease_s` is the duration of a claim, `renew_every_s` the interval of renewals. A worker
    stops `margin_s` before the lease expires, because clocks of machines drift apart."""

    lease_s: float = 15.0
    renew_every_s: float = 5.0
    margin_s: float = 2.0


class Leased(Protocol):
    @property
    def run_id(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The lease is valid while the stored run has this epoch."""


LeaseT = TypeVar("LeaseT", bound=Leased)
_RenewedT_contra = TypeVar("_RenewedT_contra", bound=Leased, contravariant=True)


class LeaseRenewal(Protocol[_RenewedT_contra]):
    """The renewing part of a lease store."""

    async def renew(
        self, worker_id: WorkerId, leases: tuple[_RenewedT_contra, ...], *, lease_s: float, at: datetime
    ) -> frozenset[str]:
        """Extend all leases. Returns the runs with a lost lease."""


@dataclass(slots=True, kw_only=True)
class _Held(Generic[LeaseT]):
    lease: LeaseT
    stop: StopSignal
    renewed_at: float


class ActiveRuns(Generic[LeaseT]):
    """Rules:
    - A lease is valid from before the statement that renews it.
    - A run with a lost lease is stopped and writes nothing more.
    - While the store is unavailable, leases expire by the clock, and nothing is sent on an expired
      lease.
    """

    def __init__(
        self, *, leases: LeaseRenewal[LeaseT], clock: Clock, worker_id: WorkerId, settings: LeaseSettings
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._settings = settings
        self._held: dict[str, _Held[LeaseT]] = {}
        self._claims: dict[asyncio.Event, None] = {}
        self._draining = False
        self.worker_id = worker_id

    @property
    def lease_s(self) -> float:
        """Duration of a claim, in seconds."""
        return self._settings.lease_s

    @property
    def count(self) -> int:
        """Number of runs that this worker executes."""
        return len(self._held)

    @property
    def count_with_claims(self) -> int:
        """Number of runs that this worker executes or is about to: claims in progress count."""
        return len(self._held) + len(self._claims)

    @contextmanager
    def claiming(self) -> Iterator[None]:
        """A claim is in progress until the end of the block. `add` the run right after it."""
        ended = asyncio.Event()
        self._claims[ended] = None
        try:
            yield
        finally:
            del self._claims[ended]
            ended.set()

    async def claims_ended(self) -> None:
        """Wait for the claims in progress. Claims that begin meanwhile are not waited for."""
        for claim in tuple(self._claims):
            await claim.wait()
        await asyncio.sleep(0)  # those who waited for the same claims are all here first

    def add(self, lease: LeaseT, stop: StopSignal, *, claimed_at: float) -> Callable[[], bool]:
        """Add a claimed run. Returns a function that says whether its lease is valid. `claimed_at`
        is monotonic, before the claim."""
        held = _Held(lease=lease, stop=stop, renewed_at=claimed_at)
        self._held[lease.run_id] = held
        if self._draining:
            stop.drain()
        life_s = self._settings.lease_s - self._settings.margin_s
        return lambda: self._clock.monotonic() < held.renewed_at + life_s

    def remove(self, lease: LeaseT) -> None:
        """This worker no longer executes the run."""
        held = self._held.get(lease.run_id)
        if held is not None and held.lease.epoch == lease.epoch:
            del self._held[lease.run_id]

    def drain(self) -> None:
        """Let every run finish its current step and hand itself back; runs added later as well."""
        self._draining = True
        for held in self._held.values():
            held.stop.drain()

    def stop_all(self) -> None:
        """Stop the runs that have not drained."""
        for held in self._held.values():
            held.stop.fire(StopReason.SHUTDOWN)

    async def keep(self) -> None:
        """Renew leases until cancelled. Retries come sooner, so that leases survive a short outage
        of the database."""
        seconds = self._settings.renew_every_s
        await every(seconds, self.renew, task="leases", retry_s=seconds / _TRIES_BETWEEN)

    async def renew(self) -> None:
        """Renew all leases once, and stop the runs with a lost lease."""
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
