"""FireTimers: due timers end approvals, whatever other timers do."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.approvals.fire_timers import REREAD_S, FireTimers
from application.approvals.ports import TIMERS_TOPIC, ApprovalDecider, ApprovalStore, TimerStore
from application.system.wakeups import Subscription, Wakeups
from domain.approvals.approval import ApprovalState
from domain.approvals.timer import Timer, TimerKind
from domain.ids import TimerId
from tests.builders import ORG, START, after, numbered
from tests.doubles.surroundings import FixedClock
from tests.gateway_builders import a_gateway_approval
from tests.refusals import storage_away
from tests.run_builders import a_run_approval

APPROVAL = a_run_approval()


def a_timer(number: int = 1) -> Timer:
    return Timer(
        id=TimerId(numbered("tmr", number)),
        organization_id=ORG,
        kind=TimerKind.APPROVAL_EXPIRY,
        subject_id=APPROVAL.id,
        due_at=START,
    )


class Ports:
    """Mocks of what `FireTimers` calls: one timer is due, of an approval of a run that is still
    pending."""

    def __init__(self, mocker: MockerFixture) -> None:
        self.timers: MockType = mocker.create_autospec(TimerStore, instance=True)
        self.timers.due.return_value = (a_timer(),)
        self.approvals: MockType = mocker.create_autospec(ApprovalStore, instance=True)
        self.approvals.get.return_value = APPROVAL
        self.of_run: MockType = mocker.create_autospec(ApprovalDecider, instance=True)
        self.of_run.expire.return_value = True
        self.of_session: MockType = mocker.create_autospec(ApprovalDecider, instance=True)
        self.of_session.expire.return_value = True
        self.added: MockType = mocker.create_autospec(Subscription, instance=True)
        self.added.wait.side_effect = asyncio.CancelledError
        self.topics: list[str] = []

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[MockType]:
        self.topics.append(topic)
        yield self.added

    def firing(self, mocker: MockerFixture) -> FireTimers:
        wakeups = mocker.create_autospec(Wakeups, instance=True)
        wakeups.subscribe.side_effect = self.subscribe
        return FireTimers(
            timers=self.timers,
            approvals=self.approvals,
            of_run=self.of_run,
            of_session=self.of_session,
            wakeups=wakeups,
            clock=FixedClock(),
        )


@pytest.fixture
def ports(mocker: MockerFixture) -> Ports:
    return Ports(mocker)


@pytest.fixture
def firing(ports: Ports, mocker: MockerFixture) -> FireTimers:
    return ports.firing(mocker)


async def waited_s(ports: Ports, firing: FireTimers) -> float:
    """How long `keep` waits for a signal after it has fired what is due."""
    with pytest.raises(asyncio.CancelledError):
        await firing.keep()
    seconds: float = ports.added.wait.await_args.args[0]
    return seconds


@pytest.mark.requirement("C3")
async def test_a_due_timer_expires_the_approval_of_a_run(ports: Ports, firing: FireTimers) -> None:
    assert await firing.execute() == 1

    ports.of_run.expire.assert_awaited_once_with(APPROVAL)
    ports.of_session.expire.assert_not_awaited()
    ports.timers.remove.assert_not_awaited()


@pytest.mark.requirement("C3", "F5")
async def test_a_due_timer_expires_the_approval_of_a_gateway_session(ports: Ports, firing: FireTimers) -> None:
    ports.approvals.get.return_value = a_gateway_approval()

    assert await firing.execute() == 1

    ports.of_session.expire.assert_awaited_once_with(a_gateway_approval())
    ports.of_run.expire.assert_not_awaited()


@pytest.mark.requirement("C3")
async def test_a_timer_whose_approval_is_gone_or_has_ended_is_removed_and_expires_nothing(
    ports: Ports, firing: FireTimers
) -> None:
    ports.timers.due.return_value = (a_timer(1), a_timer(2))
    ports.approvals.get.side_effect = [None, replace(APPROVAL, state=ApprovalState.APPROVED)]

    await firing.execute()

    assert [call.args for call in ports.timers.remove.await_args_list] == [(a_timer(1).id,), (a_timer(2).id,)]
    ports.of_run.expire.assert_not_awaited()


@pytest.mark.requirement("C3")
async def test_a_timer_whose_approval_ends_at_the_same_time_is_removed(ports: Ports, firing: FireTimers) -> None:
    ports.of_run.expire.return_value = False

    await firing.execute()

    ports.timers.remove.assert_awaited_once_with(a_timer().id)


@pytest.mark.requirement("C3")
async def test_a_timer_that_fails_stays_and_does_not_stop_the_others(
    ports: Ports, firing: FireTimers, caplog: pytest.LogCaptureFixture
) -> None:
    ports.timers.due.return_value = (a_timer(1), a_timer(2))
    ports.of_run.expire.side_effect = [storage_away(), True]

    assert await firing.execute() == 1

    ports.timers.remove.assert_not_awaited()
    assert [record.message for record in caplog.records if record.exc_info] == ["a timer failed"]


async def test_timers_after_a_full_batch_are_read_from_the_last_one_on(ports: Ports, firing: FireTimers) -> None:
    full = tuple(a_timer(number) for number in range(1, 101))
    ports.timers.due.side_effect = [full, (a_timer(101),)]

    assert await firing.execute() == 101

    assert ports.timers.due.await_args.kwargs["after"] == full[-1]


async def test_timers_that_cannot_be_read_expire_nothing(ports: Ports, firing: FireTimers) -> None:
    ports.timers.due.side_effect = storage_away()

    with pytest.raises(Exception, match="database"):
        await firing.execute()

    ports.of_run.expire.assert_not_awaited()


@pytest.mark.parametrize(
    ("due_in_s", "waits_s"),
    [(12, 12), (3600, REREAD_S), (None, REREAD_S), (-1, 5)],
    ids=["next timer", "far timer", "no timer", "failed timer"],
)
async def test_the_wait_ends_with_the_next_timer_or_after_half_a_minute(
    ports: Ports, firing: FireTimers, due_in_s: int | None, waits_s: float
) -> None:
    ports.timers.next_due.return_value = None if due_in_s is None else after(due_in_s)

    assert await waited_s(ports, firing) == waits_s
    assert ports.topics == [TIMERS_TOPIC]
    ports.of_run.expire.assert_awaited_once()


async def test_timers_that_cannot_be_read_are_read_again_soon(
    ports: Ports, firing: FireTimers, caplog: pytest.LogCaptureFixture
) -> None:
    ports.timers.due.side_effect = storage_away()

    assert await waited_s(ports, firing) == 5
    assert [vars(record)["task"] for record in caplog.records] == ["timers"]
