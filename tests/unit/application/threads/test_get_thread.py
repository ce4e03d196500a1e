"""GetThread: who reads which thread."""

import pytest
from pytest_mock import MockerFixture

from application.threads.ports import ThreadStore
from application.threads.queries import GetThread
from domain.identity.role import Role
from tests.builders import THREAD, a_thread
from tests.refusals import refused, storage_away
from tests.thread_builders import stored_threads
from tests.unit.application.actors import a_principal, a_stranger


@pytest.mark.parametrize("role", list(Role))
async def test_every_role_reads_a_thread(role: Role) -> None:
    threads, _ = stored_threads()

    thread = await GetThread(threads=threads).execute(principal=a_principal(role), thread_id=THREAD)

    assert thread == a_thread()


@pytest.mark.requirement("C6")
async def test_a_thread_of_another_organization_is_not_found() -> None:
    threads, _ = stored_threads()

    with refused("thread_not_found"):
        await GetThread(threads=threads).execute(principal=a_stranger(), thread_id=THREAD)


async def test_a_storage_failure_is_not_mistaken_for_a_missing_thread(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.get.side_effect = storage_away()

    with refused("storage_unavailable"):
        await GetThread(threads=threads).execute(principal=a_principal(), thread_id=THREAD)
