"""DeleteThread: what goes with a thread, and what stays."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.ports import ThreadStore
from domain.audit.event import AuditAction
from domain.errors import ServiceError
from domain.identity.role import Role
from tests.builders import RUN, THREAD, a_message, a_run, a_thread, a_thread_id, an_audit_event
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.run_builders import an_ended_run
from tests.thread_builders import a_quarantine, stored_threads
from tests.unit.application.actors import a_principal, a_stranger

COMMAND = DeleteThreadCommand(principal=a_principal(Role.OPERATOR), thread_id=THREAD)


async def delete(threads: ThreadStore, command: DeleteThreadCommand = COMMAND) -> None:
    await DeleteThread(threads=threads, clock=FixedClock(), ids=SequentialIds()).execute(command)


@pytest.mark.requirement("C5")
async def test_a_thread_goes_with_its_messages_and_runs_and_its_audit_entries_stay() -> None:
    threads, state = stored_threads(a_message(), run=an_ended_run())
    before = an_audit_event(9, run_id=RUN)
    state.record(before)

    await delete(threads)

    assert (state.threads, state.runs) == ({}, {})
    kept, entry = state.audit.values()
    assert kept == before
    assert (entry.action, entry.actor, entry.resource) == (AuditAction.THREAD_DELETED, "key_operator", THREAD)


@pytest.mark.requirement("E5")
async def test_a_thread_with_an_unfinished_run_is_not_deleted() -> None:
    threads, state = stored_threads(run=a_run())

    with pytest.raises(ServiceError) as raised:
        await delete(threads)

    assert (raised.value.code, raised.value.extra) == ("thread_busy", {"run_id": RUN})
    assert (list(state.threads), state.audit) == ([THREAD], {})


@pytest.mark.requirement("C4")
async def test_a_thread_in_quarantine_is_not_deleted() -> None:
    threads, state = stored_threads(thread=replace(a_thread(), quarantine=a_quarantine()))

    with refused("thread_quarantined"):
        await delete(threads)

    assert (list(state.threads), state.audit) == ([THREAD], {})


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    "command",
    [replace(COMMAND, principal=a_stranger()), replace(COMMAND, thread_id=a_thread_id(9))],
    ids=["another organization", "no such thread"],
)
async def test_a_thread_that_the_organization_does_not_have_is_not_found(command: DeleteThreadCommand) -> None:
    threads, state = stored_threads()

    with refused("thread_not_found"):
        await delete(threads, command)

    assert (list(state.threads), state.audit) == ([THREAD], {})


@pytest.mark.requirement("C6")
async def test_a_viewer_deletes_nothing(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)

    with refused("role_insufficient"):
        await delete(threads, replace(COMMAND, principal=a_principal(Role.VIEWER)))

    threads.delete.assert_not_awaited()


async def test_a_deletion_that_cannot_be_stored_reaches_the_caller(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.delete.side_effect = storage_away()

    with refused("storage_unavailable"):
        await delete(threads)


@pytest.mark.requirement("C6")
async def test_a_runner_deletes_no_thread_that_another_key_has_run_agents_on() -> None:
    threads, state = stored_threads(a_message(), run=an_ended_run())
    runner = a_principal(Role.RUNNER)

    with refused("thread_not_yours"):
        await delete(threads, DeleteThreadCommand(principal=runner, thread_id=THREAD))

    assert (list(state.threads), state.audit) == ([THREAD], {})
    state.runs[RUN].run = replace(state.runs[RUN].run, requested_by=runner.key_id)
    await delete(threads, DeleteThreadCommand(principal=runner, thread_id=THREAD))
    assert state.threads == {}
