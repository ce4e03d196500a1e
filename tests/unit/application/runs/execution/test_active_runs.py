"""The leases of a worker: renewed together, believed only as long as they were renewed, stopped
when lost."""

import asyncio

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.execution.active_runs import ActiveRuns, LeaseSettings
from application.runs.execution.interruption import Interrupted, StopReason, StopSignal
from application.runs.ports import RunLeases
from domain.runs.lease import Lease
from tests.builders import ORG, THREAD, WORKER, a_run_id
from tests.doubles.surroundings import FixedClock


def a_lease(number: int, *, epoch: int = 1) -> Lease:
    return Lease(run_id=a_run_id(number), organization_id=ORG, thread_id=THREAD, epoch=epoch)


class Setting:
    """A worker's leases over a store that does as it is told."""

    def __init__(self, mocker: MockerFixture, *, renew_every_s: float = 5.0) -> None:
        self.clock = FixedClock()
        self.leases: MockType = mocker.create_autospec(RunLeases, instance=True)
        self.leases.renew.return_value = frozenset()
        self.runs = ActiveRuns(
            leases=self.leases,
            clock=self.clock,
            worker_id=WORKER,
            settings=LeaseSettings(lease_s=15, renew_every_s=renew_every_s, margin_s=2),
        )


@pytest.fixture
def setting(mocker: MockerFixture) -> Setting:
    return Setting(mocker)


@pytest.mark.requirement("E4")
async def test_a_lease_holds_until_a_margin_before_its_end(setting: Setting) -> None:
    holds = setting.runs.add(a_lease(1), StopSignal(), claimed_at=0)
    setting.clock.advance(12.9)
    assert holds()
    setting.clock.advance(0.2)
    assert not holds()


@pytest.mark.requirement("E4")
async def test_renewing_counts_from_before_the_statement(setting: Setting) -> None:
    holds = setting.runs.add(a_lease(1), StopSignal(), claimed_at=0)
    setting.clock.advance(5)

    def slow(*_: object, **__: object) -> frozenset[str]:
        setting.clock.advance(4)
        return frozenset()

    setting.leases.renew.side_effect = slow
    await setting.runs.renew()
    setting.clock.advance(8.9)
    assert holds()
    setting.clock.advance(0.2)
    assert not holds()


async def test_all_leases_are_renewed_in_one_statement_and_none_in_no_statement(setting: Setting) -> None:
    await setting.runs.renew()
    assert setting.leases.renew.await_count == 0
    for number in range(3):
        setting.runs.add(a_lease(number), StopSignal(), claimed_at=0)
    await setting.runs.renew()
    worker_id, leases = setting.leases.renew.await_args.args
    assert (worker_id, leases) == (WORKER, tuple(a_lease(number) for number in range(3)))
    assert setting.leases.renew.await_count == 1


@pytest.mark.requirement("E4")
async def test_only_the_runs_that_were_lost_are_stopped(setting: Setting) -> None:
    lost, kept = StopSignal(), StopSignal()
    setting.runs.add(a_lease(1), lost, claimed_at=0)
    setting.runs.add(a_lease(2), kept, claimed_at=0)
    setting.leases.renew.return_value = frozenset({a_run_id(1)})
    await setting.runs.renew()
    assert (lost.fired, kept.fired) == (StopReason.LEASE_LOST, None)


async def test_a_run_claimed_anew_while_its_old_lease_is_renewed_is_not_stopped(setting: Setting) -> None:
    stop = StopSignal()
    setting.runs.add(a_lease(1), StopSignal(), claimed_at=0)

    def claimed_again(*_: object, **__: object) -> frozenset[str]:
        setting.runs.remove(a_lease(1))
        setting.runs.add(a_lease(1, epoch=2), stop, claimed_at=0)
        return frozenset({a_run_id(1)})

    setting.leases.renew.side_effect = claimed_again
    await setting.runs.renew()
    assert stop.fired is None


async def test_removing_an_old_lease_leaves_the_newer_one(setting: Setting) -> None:
    setting.runs.add(a_lease(1, epoch=2), StopSignal(), claimed_at=0)
    setting.runs.remove(a_lease(1, epoch=1))
    assert setting.runs.count == 1
    setting.runs.remove(a_lease(1, epoch=2))
    assert setting.runs.count == 0


@pytest.mark.requirement("E7")
async def test_draining_reaches_runs_that_are_added_later(setting: Setting) -> None:
    before, after = StopSignal(), StopSignal()
    setting.runs.add(a_lease(1), before, claimed_at=0)
    setting.runs.drain()
    setting.runs.add(a_lease(2), after, claimed_at=0)
    for stop in (before, after):
        with pytest.raises(Interrupted):
            stop.check()


@pytest.mark.requirement("E4")
async def test_a_store_that_cannot_be_reached_does_not_end_the_renewing(
    mocker: MockerFixture, caplog: pytest.LogCaptureFixture
) -> None:
    setting = Setting(mocker, renew_every_s=0)
    renewed = asyncio.Event()
    answers = iter([ConnectionError("away"), ConnectionError("away"), frozenset()])

    async def renew(*_: object, **__: object) -> frozenset[str]:
        answer = next(answers, frozenset())
        if isinstance(answer, Exception):
            raise answer
        renewed.set()
        return frozenset()

    setting.leases.renew.side_effect = renew
    setting.runs.add(a_lease(1), StopSignal(), claimed_at=0)
    keeping = asyncio.create_task(setting.runs.keep())
    await renewed.wait()
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
