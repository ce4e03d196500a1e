"""The share of the event loop that one server has, over all its connections."""

import asyncio
import gc
import logging
import weakref
from collections.abc import Callable, Iterator

import pytest

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import McpServerId
from infrastructure.mcp.pace import BURST, FLOOD_S, FREE_BYTES, MESSAGE, RATE, REQUEST, Pace, Paces
from tests.builders import ORG, SERVER

pytestmark = pytest.mark.requirement("A5", "B3")

OTHER = McpServerId("mcp_other")
MEGABYTE = 1024 * 1024


class Hours:
    """The time of the event loop, which stands still."""

    def __init__(self) -> None:
        self.now = 1_000.0

        self._later: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        self._later.append(callback)

    def later(self) -> None:
        due, self._later = self._later, []
        for callback in due:
            callback()


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hours]:
    hours = Hours()
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "get_running_loop", lambda: hours)
        yield hours


def test_a_new_connection_of_a_server_has_no_new_burst(hours: Hours) -> None:
    paces = Paces()
    paces.of(ORG, SERVER).spend(BURST + RATE)
    assert paces.of(ORG, SERVER).delay_s == 1
    assert paces.of(ORG, OTHER).delay_s == 0


def test_paces_that_are_as_good_as_new_are_forgotten_unless_a_connection_has_them(hours: Hours) -> None:
    paces = Paces()
    held = paces.of(ORG, SERVER)
    held.spend(BURST + RATE)
    paces.of(ORG, OTHER).spend(BURST + RATE)
    other = weakref.ref(paces.of(ORG, OTHER))
    hours.later()
    assert other() is not None
    hours.now += 1 + BURST / RATE
    hours.later()
    gc.collect()
    assert other() is None
    assert paces.of(ORG, SERVER) is held


def test_a_server_asks_less_often_than_it_notifies_over_http(hours: Hours) -> None:
    pace = Pace()
    pace.spend(BURST)
    pace.spend(REQUEST)
    assert pace.delay_s == REQUEST / RATE


def test_connections_and_lists_delay_the_next_ones_and_no_call(hours: Hours) -> None:
    pace = Pace()
    pace.charge_work(BURST + 20 * RATE)
    assert (pace.work_delay_s, pace.delay_s) == (20, 0)
    assert not pace.is_full
    hours.now += 20 + BURST / RATE
    assert (pace.work_delay_s, pace.is_full) == (0, True)


async def test_work_that_could_not_begin_before_its_deadline_is_refused_with_the_time_to_wait(hours: Hours) -> None:
    pace = Pace()
    pace.charge_work(BURST + 20 * RATE)
    with pytest.raises(McpFailure) as raised:
        await pace.wait_to_work(hours.now + 19)
    assert (raised.value.kind, raised.value.retry_after_s) == (McpFailureKind.BUSY, 20)


def test_connections_that_fail_one_after_the_other_delay_the_next_ever_longer(hours: Hours) -> None:
    pace = Pace()
    delays = []
    for _ in range(9):
        pace.connection_failed(hours.now)
        delays.append(round(pace.work_delay_s, 6))
        hours.now += pace.work_delay_s
    assert delays == [0, 0, 0, 0, 0.6, 3.0, 3.0, 3.0, 3.0]
    assert not pace.is_full
    pace.connected()
    assert (pace.work_delay_s, pace.is_full) == (0, True)


def test_connections_that_fail_together_count_once(hours: Hours) -> None:
    one, hundred = Pace(), Pace()
    for _ in range(5):
        begun_at = hours.now
        hours.now += 0.1
        one.connection_failed(begun_at)
        for _ in range(100):
            hundred.connection_failed(begun_at)
    assert one.work_delay_s == hundred.work_delay_s > 0


@pytest.mark.parametrize(
    "charge",
    [
        lambda pace: pace.spend(BURST + RATE),
        lambda pace: pace.charge_reply(100 * MEGABYTE),
        lambda pace: pace.charge_work(BURST + RATE),
        lambda pace: pace.connection_failed(1_000.0),
    ],
)
def test_what_is_charged_after_the_pace_was_full_outlives_the_connection(
    hours: Hours, charge: Callable[[Pace], None]
) -> None:
    paces = Paces()
    pace = paces.of(ORG, SERVER)
    hours.later()
    charge(pace)
    known = weakref.ref(pace)
    del pace
    gc.collect()
    assert known() is not None
    hours.now += 1_000
    hours.later()
    gc.collect()
    assert known() is None


def test_what_is_refused_costs_more_than_what_is_taken(hours: Hours) -> None:
    taken, refused = Pace(), Pace()
    for _ in range(5):
        taken.charge_reply(MEGABYTE)
        refused.charge_reply(MEGABYTE, is_refused=True)
    assert 0 < 3 * taken.delay_s < refused.delay_s


@pytest.mark.parametrize(
    ("size", "values", "is_free"), [(FREE_BYTES, 0, True), (2 * MEGABYTE, 0, False), (2 * FREE_BYTES, 50_000, False)]
)
def test_large_replies_delay_the_next_by_their_bytes_or_their_values(
    hours: Hours, size: int, values: int, is_free: bool
) -> None:
    pace = Pace()
    for _ in range(20):
        pace.charge_reply(size, values)
    assert (pace.delay_s == 0) is is_free


def test_one_large_reply_after_a_while_delays_nothing(hours: Hours) -> None:
    pace = Pace()
    for _ in range(20):
        pace.charge_reply(2 * MEGABYTE, 50_000)
        assert pace.delay_s == 0
        hours.now += 2


def test_a_server_that_uses_up_its_rate_for_a_minute_floods_and_is_logged(
    hours: Hours, caplog: pytest.LogCaptureFixture
) -> None:
    pace = Paces().of(ORG, SERVER)
    floods: list[float] = []
    with caplog.at_level(logging.WARNING):
        while hours.now < 1_000 + 2 * FLOOD_S and not floods:
            pace.spend(BURST if pace.delay_s == 0 else 0)
            hours.now += pace.delay_s
            floods += [hours.now] if pace.take_flood() else []
    assert floods
    assert 1_000 + FLOOD_S <= floods[0] < 1_010 + FLOOD_S
    assert [getattr(record, "server_id", None) for record in caplog.records] == [SERVER]
    assert not pace.take_flood()


def test_a_server_that_rests_or_only_answers_does_not_flood(hours: Hours) -> None:
    resting, answering = Pace(), Pace()
    for _ in range(100):
        resting.spend(BURST / 4)
        answering.charge_reply(4 * MEGABYTE)
        answering.spend(MESSAGE)
        hours.now += BURST / RATE
        assert not resting.take_flood()
        assert not answering.take_flood()
