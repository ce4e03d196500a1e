"""ListQuarantinedThreads: the threads of an organization that wait for their release."""

from dataclasses import replace

import pytest

from application.threads.queries import ListQuarantinedThreads
from domain.identity.role import Role
from tests.builders import a_thread, a_thread_id, after
from tests.doubles.state import StoredThread
from tests.thread_builders import a_quarantine, stored_threads
from tests.unit.application.actors import a_principal, a_stranger

pytestmark = pytest.mark.requirement("U6", "C6")


async def test_a_viewer_lists_threads_in_quarantine_and_no_others_the_newest_first() -> None:
    older = replace(a_thread(a_thread_id(2)), quarantine=replace(a_quarantine(), at=after(1)))
    newer = replace(a_thread(a_thread_id(3)), quarantine=replace(a_quarantine(), at=after(2)))
    threads, state = stored_threads()
    state.threads |= {each.id: StoredThread(thread=each) for each in (older, newer)}
    listing = ListQuarantinedThreads(threads=threads)

    assert await listing.execute(a_principal(Role.VIEWER), 10) == (newer, older)
    assert await listing.execute(a_principal(Role.VIEWER), 1) == (newer,)
    assert await listing.execute(a_stranger(), 10) == ()
