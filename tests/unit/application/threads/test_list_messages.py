"""ListMessages: the transcript of a thread."""

import pytest
from pytest_mock import MockerFixture

from application.threads.ports import ThreadStore
from application.threads.queries import ListMessages
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from tests.builders import RUN, THREAD, a_message, a_thread_id
from tests.refusals import refused, storage_away
from tests.thread_builders import stored_threads
from tests.unit.application.actors import a_principal, a_stranger


async def test_a_viewer_reads_messages_oldest_first() -> None:
    threads, _ = stored_threads(a_message(1, "one"), a_message(2, "two"))

    page = await ListMessages(threads=threads).execute(principal=a_principal(Role.VIEWER), thread_id=THREAD)

    assert [message.text for message in page.items] == ["one", "two"]


@pytest.mark.requirement("E5")
async def test_messages_of_a_run_that_was_rolled_back_are_left_out() -> None:
    threads, state = stored_threads(a_message(1, "one"), a_message(2, "superseded", run_id=RUN))
    state.threads[THREAD].superseded_runs.add(RUN)

    page = await ListMessages(threads=threads).execute(principal=a_principal(Role.VIEWER), thread_id=THREAD)

    assert [message.text for message in page.items] == ["one"]


async def test_an_empty_thread_has_no_messages() -> None:
    threads, _ = stored_threads()

    assert (
        await ListMessages(threads=threads).execute(principal=a_principal(Role.VIEWER), thread_id=THREAD)
    ).items == ()


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "thread_id"),
    [(a_stranger(), THREAD), (a_principal(), a_thread_id(9))],
    ids=["another organization", "no such thread"],
)
async def test_a_thread_that_the_organization_does_not_have_is_not_found(
    principal: Principal, thread_id: ThreadId
) -> None:
    threads, _ = stored_threads(a_message())

    with refused("thread_not_found"):
        await ListMessages(threads=threads).execute(principal=principal, thread_id=thread_id)


async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.messages.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListMessages(threads=threads).execute(principal=a_principal(Role.VIEWER), thread_id=THREAD)

    threads.get.assert_not_awaited()
