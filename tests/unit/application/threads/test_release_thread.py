"""ReleaseThread: who ends the quarantine of a thread, and what happens then."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture, MockType

from application.runs.ports import RunQueue
from application.threads.ports import ThreadStore
from application.threads.release_thread import ReleaseThread, ReleaseThreadCommand
from domain.audit.event import AuditAction
from domain.identity.role import Role
from domain.threads.thread import Thread
from tests.builders import RUN, THREAD, a_run, a_run_id, a_thread
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.thread_builders import a_quarantine, stored_threads
from tests.unit.application.actors import a_principal, a_stranger

QUARANTINED = replace(a_thread(), quarantine=a_quarantine())
COMMAND = ReleaseThreadCommand(principal=a_principal(Role.OPERATOR), thread_id=THREAD)


@pytest.fixture
def queue(mocker: MockerFixture) -> MockType:
    return mocker.create_autospec(RunQueue, instance=True)


async def release(threads: ThreadStore, queue: MockType, command: ReleaseThreadCommand = COMMAND) -> Thread:
    releasing = ReleaseThread(threads=threads, queue=queue, clock=FixedClock(), ids=SequentialIds())
    return await releasing.execute(command)


@pytest.mark.requirement("C4", "C5")
async def test_an_operator_releases_a_thread_and_the_release_is_audited_with_its_cause(queue: MockType) -> None:
    threads, state = stored_threads(thread=QUARANTINED)

    assert (await release(threads, queue)).quarantine is None

    assert state.threads[THREAD].thread.quarantine is None
    [entry] = state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.THREAD_RELEASED, "key_operator", THREAD)
    assert entry.details == {"canary_id": "vault", "halted_run_id": RUN}
    queue.submit.assert_not_awaited()


@pytest.mark.requirement("C4")
async def test_the_run_that_waited_behind_the_quarantine_is_submitted(queue: MockType) -> None:
    threads, _ = stored_threads(thread=QUARANTINED, run=a_run(a_run_id(2)))

    await release(threads, queue)

    queue.submit.assert_awaited_once_with(a_run_id(2))


@pytest.mark.requirement("C4")
async def test_a_thread_that_is_not_in_quarantine_is_not_released(queue: MockType) -> None:
    threads, state = stored_threads()

    with refused("thread_not_quarantined"):
        await release(threads, queue)

    assert state.audit == {}


@pytest.mark.requirement("C4", "C6")
@pytest.mark.parametrize(
    ("command", "code"),
    [
        (replace(COMMAND, principal=a_principal(Role.RUNNER)), "role_insufficient"),
        (replace(COMMAND, principal=a_stranger()), "thread_not_found"),
    ],
    ids=["runner", "another organization"],
)
async def test_a_key_that_may_not_release_the_thread_changes_nothing(
    queue: MockType, command: ReleaseThreadCommand, code: str
) -> None:
    threads, state = stored_threads(thread=QUARANTINED)

    with refused(code):
        await release(threads, queue, command)

    assert (state.threads[THREAD].thread, state.audit) == (QUARANTINED, {})


async def test_a_thread_that_is_deleted_at_the_same_time_is_not_found(mocker: MockerFixture, queue: MockType) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.get.return_value = QUARANTINED
    threads.release.return_value = None

    with refused("thread_not_found"):
        await release(threads, queue)


@pytest.mark.parametrize("method", ["get", "release"])
async def test_a_release_that_cannot_be_stored_submits_nothing(
    mocker: MockerFixture, queue: MockType, method: str
) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.get.return_value = QUARANTINED
    getattr(threads, method).side_effect = storage_away()

    with refused("storage_unavailable"):
        await release(threads, queue)

    queue.submit.assert_not_awaited()
