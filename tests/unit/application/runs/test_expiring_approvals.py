"""Approvals that nobody gives in time, and the timers that see to it."""

import asyncio
from datetime import datetime, timedelta

import pytest

from domain.approvals.approval import ApprovalState
from domain.approvals.decision import CallDecision
from domain.approvals.timer import Timer, TimerKind
from domain.errors import ServiceError
from domain.identity.role import Role
from domain.ids import TimerId
from domain.runs.run import RunStatus
from tests.builders import ORG
from tests.unit.application.actors import a_principal
from tests.unit.application.runs.approving import a_house, approvals, asks_first, decide, fire_timers, sends, states
from tests.unit.application.runs.doubles import says
from tests.unit.application.runs.harness import RunHarness, assert_consistent

OPERATOR = a_principal(Role.OPERATOR)


@pytest.mark.requirement("C3")
async def test_an_approval_that_nobody_gives_in_time_is_a_denial_that_the_model_is_told_about() -> None:
    house = a_house(policies=asks_first(ttl_s=60))
    run_id = await house.play()
    [approval] = approvals(house, run_id)
    assert approval.expires_at - approval.created_at == timedelta(seconds=60)
    house.clock.advance(59)
    assert await fire_timers(house).execute() == 0
    house.clock.advance(1)
    assert await fire_timers(house).execute() == 1
    assert (house.run(run_id).status, house.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await house.worker.execute(run_id)
    assert house.run(run_id).status is RunStatus.COMPLETED
    [entry] = house.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "approval_expired"
    assert "in time" in house.results()[0]
    assert states(house, run_id) == [ApprovalState.EXPIRED]
    assert [entry.actor for entry in house.audit(run_id) if entry.action.value == "tool.denied"] == ["system"]
    assert_consistent(house, run_id)


@pytest.mark.requirement("C3")
async def test_a_timer_is_fired_once_and_one_that_was_not_needed_never() -> None:
    house = a_house(sends("a", "b"), says(), policies=asks_first(ttl_s=60))
    run_id = await house.play()
    first = approvals(house, run_id)[0]
    await decide(house, run_id, CallDecision(tool_call_id=first.tool_call_id, approve=True), principal=OPERATOR)
    house.clock.advance(61)
    timers = fire_timers(house)
    assert await timers.execute() == 1
    assert await timers.execute() == 0
    assert states(house, run_id) == [ApprovalState.APPROVED, ApprovalState.EXPIRED]
    await house.worker.execute(run_id)
    assert house.results()[0] == "sent a"


@pytest.mark.requirement("C3")
async def test_two_that_fire_at_once_do_it_once() -> None:
    house = a_house(policies=asks_first(ttl_s=60))
    run_id = await house.play()
    house.clock.advance(61)
    await asyncio.gather(fire_timers(house).execute(), fire_timers(house).execute())
    assert house.types(run_id).count("tool.blocked") == 1


@pytest.mark.requirement("C3")
async def test_it_is_too_late_from_the_moment_of_expiry_on_whether_the_timer_fired_or_not() -> None:
    house = a_house(policies=asks_first(ttl_s=60))
    run_id = await house.play()
    [approval] = approvals(house, run_id)
    late = CallDecision(tool_call_id=approval.tool_call_id, approve=True)
    house.clock.advance(60)
    for fired in (False, True):
        if fired:
            await fire_timers(house).execute()
        with pytest.raises(ServiceError) as refused:
            await decide(house, run_id, late, principal=OPERATOR)
        assert refused.value.code == "approval_expired"
    assert states(house, run_id) == [ApprovalState.EXPIRED]


@pytest.mark.requirement("C3")
async def test_the_keeper_wakes_for_a_timer_that_is_added() -> None:
    house = a_house(policies=asks_first(ttl_s=0.000001))
    keeping = asyncio.create_task(fire_timers(house).keep())
    await asyncio.sleep(0)
    try:
        run_id = await house.start()
        await house.warm_up()
        house.clock.advance(0)
        await house.worker.execute(run_id)
        house.clock.advance(1)
        # The keeper looks again within the time that was left, which is nothing.
        await house.until(run_id, lambda: states(house, run_id) == [ApprovalState.EXPIRED])
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


class TimersOfTheGone:
    """The `TimerStore` port: timers that were due while no service ran, of approvals that are no more. The first
    `failing` of them cannot be removed."""

    def __init__(self, house: RunHarness, count: int, *, failing: int = 0) -> None:
        self._kept = {TimerId(f"tmr_{number:04}") for number in range(failing)}
        self._timers = {
            TimerId(f"tmr_{number:04}"): Timer(
                id=TimerId(f"tmr_{number:04}"),
                organization_id=ORG,
                kind=TimerKind.APPROVAL_EXPIRY,
                subject_id="apr_gone",
                due_at=house.clock.now(),
            )
            for number in range(count)
        }
        self.all_fired = asyncio.Event()

    async def next_due(self) -> datetime | None:
        return next((timer.due_at for timer in self._timers.values()), None)

    async def due(self, *, at: datetime, limit: int, after: Timer | None = None) -> tuple[Timer, ...]:
        return tuple(self._timers[number] for number in sorted(self._timers) if after is None or number > after.id)[
            :limit
        ]

    async def remove(self, timer_id: TimerId) -> None:
        if timer_id in self._kept:
            raise RuntimeError("this one fails")
        del self._timers[timer_id]
        if not self._timers:
            self.all_fired.set()


async def test_the_keeper_does_not_rest_between_the_many_timers_of_a_long_night() -> None:
    house = a_house()
    timers = TimersOfTheGone(house, 250)
    keeping = asyncio.create_task(fire_timers(house, timers).keep())
    try:
        async with asyncio.timeout(2):
            await timers.all_fired.wait()
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


async def test_timers_that_fail_for_good_do_not_hold_up_those_behind_them() -> None:
    house = a_house()
    timers = TimersOfTheGone(house, 350, failing=250)
    assert await fire_timers(house, timers).execute() == 100
    assert await fire_timers(house, timers).execute() == 0
