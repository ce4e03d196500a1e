"""How a process asks for permits and keeps them."""

import asyncio
from contextvars import ContextVar

import pytest

from application.system.shared_permits import EXPIRES_S, Permits, SharedPermits
from infrastructure.persistence.engine.database import StorageAway
from tests.doubles.permit_leases import InMemoryPermitLeases, Neighbours
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("K3")

LIMITED = "calls/mcp_a"
_of_caller: ContextVar[str] = ContextVar("_of_caller", default="none")


class SlowLeases(InMemoryPermitLeases):
    """Answers a question when the test lets it, after it has stored the answer."""

    def __init__(self, clock: FixedClock) -> None:
        super().__init__(clock)
        self.stored, self.answer = asyncio.Event(), asyncio.Event()
        self.context = ""

    async def lease(self, limited: str, holder: str, *, limit: int, held: int, wanted: int) -> int:
        total = await super().lease(limited, holder, limit=limit, held=held, wanted=wanted)
        self.context = _of_caller.get()
        self.stored.set()
        await self.answer.wait()
        return total


def added(process: SharedPermits, limit: int = 8) -> Permits:
    permits = Permits(LIMITED, limit, spare=lambda is_wanted: None, freed=lambda: None)
    process.add(permits)
    return permits


async def test_a_caller_that_is_cancelled_does_not_lose_the_permit_that_is_being_stored() -> None:
    leases = SlowLeases(FixedClock())
    process = Neighbours().process(leases, "one")
    permits = added(process)
    _of_caller.set("a run")
    caller = asyncio.create_task(process.lease(permits, 1))
    await leases.stored.wait()
    caller.cancel()
    await asyncio.wait({caller})
    assert caller.cancelled()
    assert not permits.is_stored
    leases.answer.set()
    async with permits.lock:
        assert (permits.held, permits.is_stored, leases.total(LIMITED)) == (1, True, 1)
    assert leases.context == "none"
    process.give_back(permits, 1)
    await process.close()
    assert leases.total(LIMITED) == 0


async def test_processes_that_were_frozen_do_not_have_more_than_the_limit_together_afterwards() -> None:
    clock = FixedClock()
    leases, neighbours = InMemoryPermitLeases(clock), Neighbours()
    processes = [neighbours.process(leases, holder) for holder in ("one", "two")]
    here, there = (added(process) for process in processes)
    for process, permits in zip(processes, (here, there), strict=True):
        assert await process.lease(permits, 4) == 4
    clock.advance(EXPIRES_S + 1)
    assert await processes[0].lease(here, 4) == 4
    assert await processes[1].lease(there, 1) == 0
    assert (here.held, there.held, leases.total(LIMITED)) == (8, 0, 8)


async def test_expired_permits_are_forgotten_at_a_renewal_before_a_give_back_is_stored() -> None:
    clock = FixedClock()
    leases = InMemoryPermitLeases(clock)
    process = Neighbours().process(leases, "one")
    permits = added(process)
    await process.lease(permits, 4)
    leases.failure = StorageAway()
    process.give_back(permits, 1)
    await asyncio.wait(process._storing)
    leases.failure = None
    clock.advance(EXPIRES_S + 1)
    await process.renew()
    assert (permits.held, permits.is_stored, leases.total(LIMITED)) == (0, True, 0)
