"""ListThreads: the threads of an organization, newest first."""

import pytest
from pytest_mock import MockerFixture

from application.system.pages import PageRequest
from application.threads.ports import ThreadStore
from application.threads.queries import ListThreads
from domain.identity.role import Role
from tests.builders import ORG, THREAD, a_thread, a_thread_id, after
from tests.doubles.state import StoredThread
from tests.refusals import refused, storage_away
from tests.thread_builders import stored_threads
from tests.unit.application.actors import a_principal, a_stranger

NEWER = a_thread(a_thread_id(2), created_at=after(1))
VIEWER = a_principal(Role.VIEWER)


async def test_a_viewer_lists_threads_newest_first_in_pages() -> None:
    threads, state = stored_threads()
    state.threads[NEWER.id] = StoredThread(thread=NEWER)
    listing = ListThreads(threads=threads)

    first = await listing.execute(principal=VIEWER, page=PageRequest(limit=1))
    rest = await listing.execute(principal=VIEWER, page=PageRequest(limit=1, cursor=first.next_cursor))

    assert [thread.id for thread in (*first.items, *rest.items)] == [NEWER.id, THREAD]
    assert rest.next_cursor is None


@pytest.mark.requirement("C6")
async def test_threads_of_another_organization_are_not_listed() -> None:
    threads, _ = stored_threads()

    assert (await ListThreads(threads=threads).execute(principal=a_stranger())).items == ()


async def test_a_storage_failure_reaches_the_caller(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.page.side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListThreads(threads=threads).execute(principal=VIEWER)

    threads.page.assert_awaited_once_with(ORG, PageRequest())
