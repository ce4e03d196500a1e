"""ListSources: who sees the files of a thread, in which order."""

import pytest
from pytest_mock import MockerFixture

from application.sources.ports import SourceStore
from application.sources.queries import ListSources
from application.system.pages import PageRequest
from application.threads.ports import ThreadStore
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from tests.builders import THREAD, a_thread, a_thread_id
from tests.doubles.sources import InMemorySourceStore
from tests.doubles.threads import InMemoryThreadStore
from tests.refusals import refused, storage_away
from tests.unit.application.actors import a_principal, a_stranger
from tests.unit.application.sources.files import a_source, a_state_with, a_stored_source

OLD, NEW = a_source(1), a_source(2)
EVERYTHING = PageRequest()


@pytest.fixture
def list_sources() -> ListSources:
    """Over a thread with two sources and one that is still coming in, and a source of another
    thread."""
    state = a_state_with(
        a_stored_source(1),
        a_stored_source(2),
        a_stored_source(3, finished=False),
        a_stored_source(4, thread_id=a_thread_id(2)),
    )
    return ListSources(sources=InMemorySourceStore(state), threads=InMemoryThreadStore(state))


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("role", list(Role))
async def test_every_role_sees_the_finished_sources_of_a_thread_newest_first(
    list_sources: ListSources, role: Role
) -> None:
    assert (await list_sources.execute(principal=a_principal(role), thread_id=THREAD, page=EVERYTHING)).items == (
        NEW,
        OLD,
    )


async def test_sources_are_listed_page_by_page(list_sources: ListSources) -> None:
    first = await list_sources.execute(principal=a_principal(), thread_id=THREAD, page=PageRequest(limit=1))
    rest = PageRequest(limit=1, cursor=first.next_cursor)

    last = await list_sources.execute(principal=a_principal(), thread_id=THREAD, page=rest)

    assert (first.items, last.items, last.next_cursor) == ((NEW,), (OLD,), None)


@pytest.mark.requirement("C6")
@pytest.mark.parametrize(
    ("principal", "thread_id"),
    [(a_principal(), a_thread_id(99)), (a_stranger(), THREAD)],
    ids=["unknown", "of another organization"],
)
async def test_sources_of_a_thread_that_the_organization_does_not_have_are_not_found(
    mocker: MockerFixture, principal: Principal, thread_id: ThreadId
) -> None:
    sources = mocker.create_autospec(SourceStore, instance=True)
    threads = InMemoryThreadStore(a_state_with())

    with refused("thread_not_found"):
        await ListSources(sources=sources, threads=threads).execute(
            principal=principal, thread_id=thread_id, page=EVERYTHING
        )

    sources.page.assert_not_awaited()


@pytest.mark.parametrize("failing", ["threads", "sources"])
async def test_a_storage_failure_is_not_an_empty_list(mocker: MockerFixture, failing: str) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.get.return_value = a_thread()
    sources = mocker.create_autospec(SourceStore, instance=True)
    (threads.get if failing == "threads" else sources.page).side_effect = storage_away()

    with refused("storage_unavailable"):
        await ListSources(sources=sources, threads=threads).execute(
            principal=a_principal(), thread_id=THREAD, page=EVERYTHING
        )
