"""ListConversations: threads by their first words, newest first."""

import pytest

from application.system.pages import PageRequest
from application.threads.queries import ListConversations
from domain.identity.role import Role
from tests.builders import THREAD, a_message, a_thread, a_thread_id, after
from tests.doubles.state import StoredThread
from tests.thread_builders import stored_threads
from tests.unit.application.actors import a_principal, a_stranger

VIEWER = a_principal(Role.VIEWER)


def conversations() -> ListConversations:
    """Two threads: of the moon, and of the tides."""
    threads, state = stored_threads()
    for number, text in ((2, "Is the moon full?"), (3, "When are the tides?")):
        thread = a_thread(a_thread_id(number), created_at=after(number))
        state.threads[thread.id] = StoredThread(thread=thread, messages=[a_message(number, text, thread_id=thread.id)])
    return ListConversations(threads=threads)


async def test_a_viewer_lists_conversations_by_their_first_words_in_pages() -> None:
    listing = conversations()
    first = await listing.execute(VIEWER, page=PageRequest(limit=1))
    rest = await listing.execute(VIEWER, page=PageRequest(limit=9, cursor=first.next_cursor))
    assert [each.opening for each in first.items] == ["When are the tides?"]
    assert [each.thread.id for each in rest.items] == [a_thread_id(2), THREAD]


async def test_a_search_finds_first_words_in_any_case() -> None:
    found = await conversations().execute(VIEWER, search="  MOON ")
    assert [each.thread.id for each in found.items] == [a_thread_id(2)]


@pytest.mark.requirement("C6")
async def test_conversations_of_another_organization_are_not_listed() -> None:
    assert (await conversations().execute(a_stranger())).items == ()
