"""SharedRates: rates over several processes, each with its own clock."""

import asyncio

import pytest

from application.system.rates import TooSoon
from application.system.shared_rates import LOT_S, VOID_AFTER_S, SharedRates
from domain.rate_limit import RateLimit
from infrastructure.persistence.engine.database import StorageAway
from tests.doubles.rate_leases import InMemoryRateLeases
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused

pytestmark = pytest.mark.requirement("K3")

HUNDRED = RateLimit(calls=100, per_s=1)
LARGEST_LOT = round(100 * LOT_S)
TICK_S = 0.005


class Processes:
    """Processes on one database. Their clocks run alike, and none says the same time."""

    def __init__(self, number: int) -> None:
        self.clock = FixedClock()
        self.leases = InMemoryRateLeases(self.clock)
        self.clocks = [FixedClock() for _ in range(number)]
        for skew, clock in enumerate(self.clocks):
            clock.advance(1_000 * skew)
        self.rates = [SharedRates(leases=self.leases, clock=clock, sleep=self.sleep) for clock in self.clocks]
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        for clock in (self.clock, *self.clocks):
            clock.advance(seconds)

    async def turn(
        self, process: int, limit: RateLimit = HUNDRED, *, of: str = "key_a", max_wait_s: float = 0
    ) -> float:
        turn = self.rates[process].turn(((of, limit),), max_wait_s)
        return turn if isinstance(turn, float) else await turn

    async def passes(self, process: int, limit: RateLimit = HUNDRED, *, of: str = "key_a") -> bool:
        try:
            await self.turn(process, limit, of=of)
        except TooSoon:
            return False
        return True

    async def flooded(self, seconds: float, *processes: int, of: str = "key_a") -> int:
        """Calls that passed while each process tried three times every tick."""
        passed = 0
        for _ in range(round(seconds / TICK_S)):
            self.advance(TICK_S)
            for process in processes * 3:
                passed += await self.passes(process, of=of)
        return passed


async def test_a_limit_of_a_hundred_calls_a_second_over_four_processes_lets_a_hundred_through() -> None:
    four = Processes(4)
    burst = await four.flooded(1, 0, 1, 2, 3)
    assert 195 <= burst <= 200, "the burst after a pause, and one second"

    passed = await four.flooded(10, 0, 1, 2, 3)

    assert 950 <= passed <= 1_050
    assert four.leases.questions < 4 * 11 * 25, "few of the 26,400 calls asked the database"


async def test_a_busy_process_has_the_places_that_idle_ones_do_not_use() -> None:
    two = Processes(2)
    await two.flooded(2, 0)
    assert 95 <= await two.flooded(1, 0) <= 105
    assert await two.passes(1) or await two.flooded(0.5, 1) > 0


async def test_calls_below_the_limit_mostly_ask_nothing_and_never_are_refused() -> None:
    two = Processes(2)
    for _ in range(1_000):  # 80 calls per second together
        two.advance(0.025)
        assert await two.passes(0)
        assert await two.passes(1)
    assert two.leases.questions < 2 * 25 * 10


async def test_a_dead_process_takes_at_most_one_lot_along() -> None:
    two = Processes(2)
    await two.flooded(3, 0)
    two.rates[0] = SharedRates(leases=two.leases, clock=two.clocks[0])  # it was killed, and begins without places
    passed = await two.flooded(1, 1)
    assert 100 - LARGEST_LOT <= passed <= 105


async def test_places_are_not_saved_for_a_burst() -> None:
    two = Processes(2)
    await two.flooded(2, 0, 1)
    two.advance(VOID_AFTER_S)  # lots are void, and the bucket is full again
    passed = 0
    for _ in range(200):
        passed += await two.passes(0) + await two.passes(1)
    assert passed == 100


async def test_organizations_and_changed_limits_have_buckets_of_their_own() -> None:
    one = Processes(1)
    await one.flooded(2, 0)
    assert not await one.passes(0)
    assert await one.passes(0, of="key_b")
    assert await one.passes(0, RateLimit(calls=101, per_s=1))


async def test_a_request_of_two_limits_takes_a_place_of_both_or_of_none() -> None:
    one = Processes(1)
    wide, narrow = ("key_a", RateLimit(calls=2, per_s=60)), ("ses_a", RateLimit(calls=1, per_s=60))

    async def both() -> float:
        turn = one.rates[0].turn((wide, narrow))
        return turn if isinstance(turn, float) else await turn

    assert await both() == 0
    for _ in range(3):
        with pytest.raises(TooSoon):
            await both()
    assert await one.turn(0, wide[1], of="key_a") == 0


async def test_calls_with_time_wait_for_their_turns_one_after_the_other_over_all_processes() -> None:
    two, slow = Processes(2), RateLimit(calls=1, per_s=10)
    waits = [round(await two.turn(number % 2, slow, max_wait_s=35)) for number in range(4)]
    assert waits == [0, 10, 20, 30]
    for process in (0, 1):
        with pytest.raises(TooSoon) as refused_call:
            await two.turn(process, slow, max_wait_s=35)
        assert round(refused_call.value.wait_s) == 40
    questions = two.leases.questions
    with pytest.raises(TooSoon):
        await two.turn(0, slow, max_wait_s=35)
    assert two.leases.questions == questions, "it is known that there is no place in time"


async def test_calls_that_come_together_wait_for_one_lot() -> None:
    one = Processes(1)
    await asyncio.gather(*(one.turn(0) for _ in range(10)))
    assert one.leases.questions <= 5


async def test_without_the_database_the_last_lot_is_used_up_and_then_its_error_is_the_answer() -> None:
    one = Processes(1)
    await one.flooded(3, 0)
    await one.rates[0].close()
    one.advance(VOID_AFTER_S)
    assert await one.passes(0)
    await one.rates[0].close()
    one.leases.failure = StorageAway()
    passed = 0
    with refused("storage_unavailable"):
        for _ in range(100):
            passed += await one.passes(0)
    assert 0 < passed <= 2 * LARGEST_LOT
    one.leases.failure = None
    assert await one.passes(0)


async def test_a_call_with_time_waits_for_the_database_and_no_longer() -> None:
    one = Processes(1)
    one.leases.failure = StorageAway()
    with refused("storage_unavailable"):
        await one.turn(0, max_wait_s=1)
    assert 0.8 <= sum(one.waits) <= 1

    def back() -> None:
        one.leases.failure = None

    asyncio.get_running_loop().call_soon(back)
    assert await one.turn(0, max_wait_s=1) == 0


async def test_full_buckets_are_forgotten_now_and_then(mocker: object) -> None:
    one = Processes(1)
    await one.passes(0, of="key_old")
    one.advance(700)
    await one.passes(0)
    await one.rates[0].close()
    assert [bucket for bucket, _ in one.leases._schedules] == ["key_a"]
