"""ForkThread: whose messages a fork has, and which threads are not forked."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from pytest_mock import MockerFixture

from application.threads.fork_thread import ForkThread, ForkThreadCommand
from application.threads.ports import ForkedThread, SourceCopier, ThreadStore
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role
from domain.ids import ThreadId
from domain.json_value import JsonObject
from domain.threads.message import Message
from domain.threads.message import Role as Author
from domain.threads.thread import ForkPoint
from tests.builders import START, THREAD, a_message, a_run, a_thread
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused
from tests.thread_builders import a_quarantine, stored_threads
from tests.unit.application.actors import a_principal, a_stranger

pytestmark = pytest.mark.requirement("U6")

TALK = (
    a_message(1, "Count the apples"),
    a_message(2, "There are 42.", role=Author.ASSISTANT),
    a_message(3, "And the pears"),
    a_message(4, "None.", role=Author.ASSISTANT),
)
COMMAND = ForkThreadCommand(principal=a_principal(Role.RUNNER), thread_id=THREAD, before=TALK[2].id)


class NoSources:
    """The `SourceCopier` of a thread without files."""

    async def execute(self, principal: Principal, origin: ThreadId, fork: ThreadId, *, until: datetime) -> None:
        """There are none."""


async def fork(
    threads: ThreadStore, command: ForkThreadCommand = COMMAND, *, sources: SourceCopier | None = None
) -> ForkedThread:
    ids = SequentialIds()
    ids.new("thr")  # THREAD
    use_case = ForkThread(threads=threads, sources=sources or NoSources(), clock=FixedClock(), ids=ids)
    return await use_case.execute(command)


async def test_a_fork_has_the_messages_before_the_one_that_is_replaced_and_the_thread_keeps_all() -> None:
    threads, state = stored_threads(*TALK, thread=a_thread(metadata={"ticket": 7}))

    done = await fork(threads)

    forked = done.thread
    assert done.replaced == TALK[2]
    assert forked.forked_from == ForkPoint(thread_id=THREAD, before=TALK[2].id)
    assert (forked.metadata, forked.created_at) == ({"ticket": 7}, START)
    copied: list[Message] = state.threads[forked.id].messages
    assert copied == [replace(message, thread_id=forked.id) for message in TALK[:2]]
    assert tuple(state.threads[THREAD].messages) == TALK


@pytest.mark.parametrize("metadata", [{}, {"ticket": 8}])
async def test_without_a_message_all_are_copied_and_the_client_may_give_metadata(metadata: JsonObject) -> None:
    threads, state = stored_threads(*TALK, thread=a_thread(metadata={"ticket": 7}))

    done = await fork(threads, replace(COMMAND, before=None, metadata=metadata))

    assert len(state.threads[done.thread.id].messages) == 4
    assert (done.thread.metadata, done.replaced) == (metadata, None)


async def test_the_place_is_a_message_of_a_user() -> None:
    threads, state = stored_threads(*TALK)

    with refused("fork_place_invalid"):
        await fork(threads, replace(COMMAND, before=TALK[1].id))

    assert list(state.threads) == [THREAD]


async def test_while_a_run_is_unfinished_only_what_was_before_a_message_is_copied() -> None:
    threads, state = stored_threads(*TALK, run=a_run())

    with refused("thread_busy"):
        await fork(threads, replace(COMMAND, before=None))

    assert len(state.threads[(await fork(threads)).thread.id].messages) == 2


async def test_a_thread_in_quarantine_is_not_forked() -> None:
    threads, state = stored_threads(*TALK, thread=replace(a_thread(), quarantine=a_quarantine()))

    with refused("thread_quarantined"):
        await fork(threads)

    assert list(state.threads) == [THREAD]


async def test_viewers_fork_nothing_and_a_thread_of_another_organization_is_not_found() -> None:
    threads, state = stored_threads(*TALK)

    with refused("role_insufficient"):
        await fork(threads, replace(COMMAND, principal=a_principal(Role.VIEWER)))
    with refused("thread_not_found"):
        await fork(threads, replace(COMMAND, principal=a_stranger()))

    assert list(state.threads) == [THREAD]


async def test_the_files_that_were_there_at_its_place_are_copied_or_none(mocker: MockerFixture) -> None:
    threads, _ = stored_threads(*TALK)
    sources = mocker.create_autospec(SourceCopier, instance=True)

    before = await fork(threads, sources=sources)
    whole = await fork(threads, replace(COMMAND, before=None), sources=sources)
    await fork(threads, replace(COMMAND, with_sources=False), sources=sources)

    principal = COMMAND.principal
    assert sources.execute.await_args_list == [
        mocker.call(principal, THREAD, before.thread.id, until=TALK[2].created_at),
        mocker.call(principal, THREAD, whole.thread.id, until=START),
    ]


async def test_without_its_files_there_is_no_fork(mocker: MockerFixture) -> None:
    threads, state = stored_threads(*TALK)
    sources = mocker.create_autospec(SourceCopier, instance=True)
    sources.execute.side_effect = ServiceError("fork_sources_too_large", ErrorKind.TOO_LARGE, "Too large.")

    with refused("fork_sources_too_large"):
        await fork(threads, sources=sources)

    assert list(state.threads) == [THREAD]
    assert [entry.action.value for entry in state.audit.values()] == ["thread.deleted"]


@pytest.mark.parametrize(
    ("later", "code"),
    [
        ({"team": "finance"}, "thread_not_found"),
        ({"quarantine": a_quarantine()}, "thread_quarantined"),
        (None, "thread_not_found"),
    ],
    ids=["given to a team", "in quarantine", "deleted"],
)
async def test_files_of_a_thread_that_has_changed_since_are_not_copied(
    later: dict[str, Any] | None, code: str, mocker: MockerFixture
) -> None:
    threads, state = stored_threads(*TALK)
    store = mocker.create_autospec(ThreadStore, instance=True)
    store.get.side_effect = [a_thread(), None if later is None else replace(a_thread(), **later)]
    store.fork.side_effect = threads.fork
    store.delete.side_effect = threads.delete
    sources = mocker.create_autospec(SourceCopier, instance=True)

    with refused(code):
        await fork(store, sources=sources)

    sources.execute.assert_not_called()
    assert list(state.threads) == [THREAD]
