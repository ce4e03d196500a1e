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
from tests.unit.application.runs.approving import a_harness, approvals, asks_first, decide, fire_timers, sends, states
from tests.unit.application.runs.doubles import says
from tests.unit.application.runs.harness import RunHarness
from tests.unit.application.runs.invariants import assert_consistent

OPERATOR = a_principal(Role.OPERATOR)


@pytest.mark.requirement("C3")
async def test_an_approval_that_nobody_gives_in_time_is_a_denial_that_the_model_is_told_about() -> None:
    harness = a_harness(policies=asks_first(ttl_s=60))
    run_id = await harness.play()
    [approval] = approvals(harness, run_id)
    assert approval.expires_at - approval.created_at == timedelta(seconds=60)
    harness.clock.advance(59)
    assert await fire_timers(harness).execute() == 0
    harness.clock.advance(1)
    assert await fire_timers(harness).execute() == 1
    assert (harness.run(run_id).status, harness.queue.run_ids[-1]) == (RunStatus.QUEUED, run_id)
    await harness.worker.execute(run_id)
    assert harness.run(run_id).status is RunStatus.COMPLETED
    [entry] = harness.ledger(run_id)
    assert entry.result is not None
    assert entry.result.error_code == "approval_expired"
    assert "in time" in harness.results()[0]
    assert states(harness, run_id) == [ApprovalState.EXPIRED]
    assert [entry.actor for entry in harness.audit(run_id) if entry.action.value == "tool.denied"] == ["system"]
    assert_consistent(harness, run_id)


@pytest.mark.requirement("C3")
async def test_a_timer_is_fired_once_and_one_that_was_not_needed_never() -> None:
    harness = a_harness(sends("a", "b"), says(), policies=asks_first(ttl_s=60))
    run_id = await harness.play()
    first = approvals(harness, run_id)[0]
    await decide(harness, run_id, CallDecision(tool_call_id=first.tool_call_id, approve=True), principal=OPERATOR)
    harness.clock.advance(61)
    timers = fire_timers(harness)
    assert await timers.execute() == 1
    assert await timers.execute() == 0
    assert states(harness, run_id) == [ApprovalState.APPROVED, ApprovalState.EXPIRED]
    await harness.worker.execute(run_id)
    assert harness.results()[0] == "sent a"


@pytest.mark.requirement("C3")
async def test_two_that_fire_at_once_do_it_once() -> None:
    harness = a_harness(policies=asks_first(ttl_s=60))
    run_id = await harness.play()
    harness.clock.advance(61)
    await asyncio.gather(fire_timers(harness).execute(), fire_timers(harness).execute())
    assert harness.types(run_id).count("tool.blocked") == 1


@pytest.mark.requirement("C3")
async def test_it_is_too_late_from_the_moment_of_expiry_on_whether_the_timer_fired_or_not() -> None:
    harness = a_harness(policies=asks_first(ttl_s=60))
    run_id = await harness.play()
    [approval] = approvals(harness, run_id)
    late = CallDecision(tool_call_id=approval.tool_call_id, approve=True)
    harness.clock.advance(60)
    for fired in (False, True):
        if fired:
            await fire_timers(harness).execute()
        with pytest.raises(ServiceError) as refused:
            await decide(harness, run_id, late, principal=OPERATOR)
        assert refused.value.code == "approval_expired"
    assert states(harness, run_id) == [ApprovalState.EXPIRED]


@pytest.mark.requirement("C3")
async def test_the_keeper_wakes_for_a_timer_that_is_added() -> None:
    harness = a_harness(policies=asks_first(ttl_s=0.000001))
    keeping = asyncio.create_task(fire_timers(harness).keep())
    await asyncio.sleep(0)
    try:
        run_id = await harness.start()
        await harness.warm_up()
        harness.clock.advance(0)
        await harness.worker.execute(run_id)
        harness.clock.advance(1)
        # The keeper looks again within the time that was left, which is nothing.
        await harness.until(run_id, lambda: states(harness, run_id) == [ApprovalState.EXPIRED])
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


class TimersOfTheGone:
    """The `TimerStore` port: timers that were due while no service ran, of approvals that are no
    more. The first `failing` of them cannot be removed."""

    def __init__(self, harness: RunHarness, count: int, *, failing: int = 0) -> None:
        self._kept = {TimerId(f"tmr_{number:04}") for number in range(failing)}
        self._timers = {
            TimerId(f"tmr_{number:04}"): Timer(
                id=TimerId(f"tmr_{number:04}"),
                organization_id=ORG,
                kind=TimerKind.APPROVAL_EXPIRY,
                subject_id="apr_gone",
                due_at=harness.clock.now(),
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
    harness = a_harness()
    timers = TimersOfTheGone(harness, 250)
    keeping = asyncio.create_task(fire_timers(harness, timers).keep())
    try:
        async with asyncio.timeout(2):
            await timers.all_fired.wait()
    finally:
        keeping.cancel()
        await asyncio.wait((keeping,))


async def test_timers_that_fail_for_good_do_not_hold_up_those_behind_them() -> None:
    harness = a_harness()
    timers = TimersOfTheGone(harness, 350, failing=250)
    assert await fire_timers(harness, timers).execute() == 100
    assert await fire_timers(harness, timers).execute() == 0
