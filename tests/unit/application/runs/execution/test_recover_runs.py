"""RecoverRuns: which runs are submitted again."""

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.execution.recover_runs import RecoverRuns
from application.runs.ports import RunLeases, RunQueue
from domain.runs.run import RunStatus
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import RUN, WORKER, a_run, a_run_id, a_thread, a_thread_id, after
from tests.doubles.leases import InMemoryRunLeases
from tests.doubles.state import InMemoryState, StoredRun, StoredThread
from tests.doubles.surroundings import FixedClock
from tests.refusals import refused, storage_away
from tests.run_builders import a_claimed_run, a_state_with_run, an_ended_run

LEASE_S = 15.0


@pytest.fixture
def queue(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(RunQueue, instance=True)


def held_by_a_worker() -> InMemoryState:
    """A run in progress whose lease ends after LEASE_S."""
    state = a_state_with_run(a_claimed_run())
    stored = state.runs[RUN]
    stored.held_by, stored.lease_until = WORKER, after(LEASE_S)
    return state


def recovering(state: InMemoryState, queue: MockType, clock: FixedClock | None = None) -> RecoverRuns:
    leases = InMemoryRunLeases(state, InProcessWakeups())
    return RecoverRuns(leases=leases, queue=queue, clock=clock or FixedClock())


@pytest.mark.requirement("E4")
async def test_a_queued_run_is_submitted_though_its_signal_was_lost(queue: MockType) -> None:
    assert await recovering(a_state_with_run(a_run()), queue).execute() == 1

    queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("E4")
async def test_a_run_whose_lease_has_expired_is_queued_again_and_submitted(queue: MockType) -> None:
    state, clock = held_by_a_worker(), FixedClock()
    clock.advance(LEASE_S)

    assert await recovering(state, queue, clock).execute() == 1

    run = state.runs[RUN].run
    assert (run.status, run.lapses) == (RunStatus.QUEUED, 1)
    queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("E4")
async def test_a_run_whose_lease_is_valid_stays_with_its_worker(queue: MockType) -> None:
    state = held_by_a_worker()

    assert await recovering(state, queue).execute() == 0

    assert state.runs[RUN].run.status is RunStatus.IN_PROGRESS


@pytest.mark.requirement("E4", "E7")
async def test_the_sole_owner_of_the_database_treats_every_lease_as_expired(queue: MockType) -> None:
    state = held_by_a_worker()

    assert await recovering(state, queue).execute(sole_owner=True) == 1

    assert state.runs[RUN].run.status is RunStatus.QUEUED
    queue.submit.assert_awaited_once_with(RUN)


@pytest.mark.requirement("E4", "K1")
async def test_the_sole_owner_of_the_database_submits_all_runs_so_that_its_queue_can_order_them(
    queue: MockType,
) -> None:
    state = a_state_with_run(a_run())
    for number in range(2, 1_502):
        run = a_run(a_run_id(number), thread_id=a_thread_id(number))
        state.threads[run.thread_id] = StoredThread(thread=a_thread(run.thread_id))
        state.runs[run.id] = StoredRun(run=run)

    assert await recovering(state, queue).execute() == 1_000
    assert await recovering(state, queue).execute(sole_owner=True) == 1_501


@pytest.mark.requirement("E4")
async def test_an_ended_run_is_not_submitted(queue: MockType) -> None:
    assert await recovering(a_state_with_run(an_ended_run()), queue).execute() == 0


async def test_leases_that_cannot_be_read_submit_nothing(mocker: MockerFixture, queue: MockType) -> None:
    leases = mocker.create_autospec(RunLeases, instance=True)
    leases.recoverable.side_effect = storage_away()

    with refused("storage_unavailable"):
        await RecoverRuns(leases=leases, queue=queue, clock=FixedClock()).execute()

    queue.submit.assert_not_awaited()
