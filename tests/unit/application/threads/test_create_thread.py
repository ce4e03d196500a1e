"""CreateThread: who begins a thread, and where."""

import pytest
from pytest_mock import MockerFixture

from application.threads.create_thread import CreateThread, CreateThreadCommand
from application.threads.ports import ThreadStore
from domain.identity.role import Role
from tests.builders import ORG, START
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.doubles.threads import InMemoryThreadStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal
from tests.unit.application.team_ports import team_checks


def creating(threads: ThreadStore, state: InMemoryState | None = None) -> CreateThread:
    return CreateThread(
        threads=threads, team_checks=team_checks(state or InMemoryState()), clock=FixedClock(), ids=SequentialIds()
    )


@pytest.mark.requirement("C6")
async def test_a_runner_begins_an_empty_thread_in_its_organization() -> None:
    state = InMemoryState()
    command = CreateThreadCommand(principal=a_principal(Role.RUNNER), metadata={"ticket": 7})

    thread = await creating(InMemoryThreadStore(state)).execute(command)

    assert (thread.organization_id, thread.created_at, thread.metadata) == (ORG, START, {"ticket": 7})
    stored = state.threads[thread.id]
    assert (stored.thread, stored.messages) == (thread, [])


@pytest.mark.requirement("C6")
async def test_a_viewer_begins_no_thread(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)

    with refused("role_insufficient"):
        await creating(threads).execute(CreateThreadCommand(principal=a_principal(Role.VIEWER)))

    threads.add.assert_not_awaited()


async def test_a_thread_that_cannot_be_stored_is_not_answered(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.add.side_effect = storage_away()

    with refused("storage_unavailable"):
        await creating(threads).execute(CreateThreadCommand(principal=a_principal()))
