"""Bulkheads over several processes on one database."""

import asyncio
from collections.abc import Callable

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from application.system.shared_permits import EXPIRES_S
from infrastructure.mcp.wrappers.bounded_connections import Place
from infrastructure.mcp.wrappers.shared_bulkheads import REST_RENEWALS, SharedBulkheads
from infrastructure.persistence.engine.database import StorageAway
from tests.doubles.permit_leases import InMemoryPermitLeases, Neighbours
from tests.doubles.surroundings import FixedClock

pytestmark = pytest.mark.requirement("K3")

KEY, LIMITED = ("mcp_a", 1), "calls/mcp_a/1"
WAIT_S = 30.0


class Processes:
    """Processes on one database, and what they have of one server."""

    def __init__(self, number: int, *, max_waiting: int = 256) -> None:
        self.clock = FixedClock()
        self.leases = InMemoryPermitLeases(self.clock)
        neighbours = Neighbours()
        self.permits = [neighbours.process(self.leases, f"process {each}") for each in range(number)]
        self.bulkheads = [SharedBulkheads("calls", max_waiting, permits=each) for each in self.permits]

    async def place(self, process: int, size: int = 4, wait_s: float = WAIT_S) -> Place:
        bulkheads = self.bulkheads[process]
        return bulkheads.try_acquire(KEY, size) or await bulkheads.acquire(KEY, size, wait_s, "busy")

    async def renewed(self) -> None:
        """Some seconds later."""
        self.clock.advance(5)
        for each in self.permits:
            await each.renew()


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


async def test_calls_of_all_processes_together_have_the_places_of_the_server() -> None:
    two = Processes(2)
    inside = [await two.place(n % 2) for n in range(4)]
    waiting = [asyncio.create_task(two.place(n)) for n in (0, 1)]
    await until(lambda: two.leases.questions >= 6)
    assert not any(task.done() for task in waiting)
    assert two.leases.total(LIMITED) == 4
    for place in inside:
        place.leave()
    for task in waiting:
        (await task).leave()


async def test_a_process_with_places_asks_nothing() -> None:
    one = Processes(1)
    places = [await one.place(0) for _ in range(4)]
    for place in places:
        place.leave()
    questions = one.leases.questions
    for _ in range(100):
        (await one.place(0)).leave()
    assert one.leases.questions == questions


async def test_spare_places_go_to_the_process_that_needs_them() -> None:
    two = Processes(2)
    for place in [await two.place(0) for _ in range(4)]:
        place.leave()
    assert two.leases.total(LIMITED) == 4
    places = [await two.place(1) for _ in range(4)]
    assert len(places) == 4


async def test_the_next_place_that_becomes_free_goes_to_the_other_process_before_own_calls() -> None:
    two = Processes(2)
    first = await two.place(0, size=1)
    others = asyncio.create_task(two.place(1, size=1))
    await until(lambda: two.bulkheads[0]._bulkheads[KEY].owes)
    own = asyncio.create_task(two.place(0, size=1))
    await asyncio.sleep(0)
    first.leave()
    (await others).leave()
    (await own).leave()


async def test_a_call_waits_no_longer_than_it_may_and_leaves_nothing_behind() -> None:
    two = Processes(2)
    place = await two.place(0, size=1)
    with pytest.raises(McpFailure) as raised:
        await two.place(1, size=1, wait_s=0.01)
    assert raised.value.kind is McpFailureKind.BUSY
    place.leave()
    (await two.place(1, size=1)).leave()


async def test_calls_beyond_the_queue_of_a_process_fail() -> None:
    one = Processes(1, max_waiting=1)
    place = await one.place(0, size=1)
    waiting = asyncio.create_task(one.place(0, size=1))
    await asyncio.sleep(0)
    with pytest.raises(McpFailure):
        await one.place(0, size=1)
    place.leave()
    (await waiting).leave()


async def test_places_of_a_dead_process_are_free_after_a_while() -> None:
    two = Processes(2)
    for _ in range(3):
        await two.place(0)
    # It was killed, and renews nothing.
    held = await two.place(1)
    two.clock.advance(EXPIRES_S - 1)
    await two.permits[1].renew()
    assert two.leases.total(LIMITED) == 4
    two.clock.advance(2)
    places = [held, *[await two.place(1) for _ in range(3)]]
    assert len(places) == 4


async def test_a_process_that_was_frozen_leases_its_places_again() -> None:
    one = Processes(1)
    place = await one.place(0, size=1)
    one.clock.advance(EXPIRES_S + 1)
    await one.permits[0].renew()
    assert one.bulkheads[0].try_acquire(KEY, 1) is None
    place.leave()
    (await one.place(0, size=1)).leave()


async def test_places_without_calls_are_given_back_after_a_while_and_forgotten() -> None:
    one = Processes(1)
    (await one.place(0)).leave()
    assert one.bulkheads[0].in_use == 0
    for _ in range(REST_RENEWALS):
        await one.renewed()
    assert one.leases.total(LIMITED) == 1
    await one.renewed()
    await asyncio.sleep(0)
    await until(lambda: one.leases.total(LIMITED) == 0)
    await one.renewed()
    assert not one.bulkheads[0]._bulkheads
    (await one.place(0)).leave()


async def test_places_that_could_not_be_given_back_are_given_back_later() -> None:
    one = Processes(1)
    places = [await one.place(0) for _ in range(4)]
    for place in places[1:]:
        place.leave()
    one.leases.failure = StorageAway()
    one.permits[0].give_back(one.bulkheads[0]._bulkheads[KEY].permits, 3)  # as when another process asks
    await until(lambda: not one.permits[0]._storing)
    one.leases.failure = None
    assert one.leases.total(LIMITED) == 4
    await one.renewed()
    assert one.leases.total(LIMITED) == 1


async def test_without_the_database_calls_have_the_places_of_their_process_and_others_wait_as_long_as_they_may() -> (
    None
):
    one = Processes(1)
    (await one.place(0, size=2)).leave()
    one.leases.failure = StorageAway()
    place = await one.place(0, size=2)
    with pytest.raises(McpFailure) as raised:
        await one.place(0, size=2, wait_s=0.01)
    assert raised.value.kind is McpFailureKind.BUSY
    one.leases.failure = None
    second = await one.place(0, size=2)
    for each in (place, second):
        each.leave()


async def test_a_process_that_ends_leaves_its_places_to_others() -> None:
    two = Processes(2)
    await two.place(0)
    await two.permits[0].close()
    assert two.leases.total(LIMITED) == 0
    two.leases.failure = StorageAway()
    await two.permits[1].close()
