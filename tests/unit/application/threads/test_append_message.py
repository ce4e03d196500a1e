"""AppendMessage: who says what on a thread without running an agent."""

from dataclasses import replace

import pytest
from pytest_mock import MockerFixture

from application.threads.append_message import AppendMessage, AppendMessageCommand
from application.threads.ports import ThreadStore
from domain.errors import ServiceError
from domain.identity.role import Role as KeyRole
from domain.threads.message import FileContent, ImageContent, Message, Role, TextContent, UserContent
from tests.builders import RUN, START, THREAD, a_message, a_run, a_thread
from tests.doubles.surroundings import FixedClock, SequentialIds
from tests.refusals import refused, storage_away
from tests.run_builders import an_ended_run
from tests.thread_builders import a_quarantine, stored_threads
from tests.unit.application.actors import a_principal, a_stranger

TEXT = TextContent(text="hello")
FILE = FileContent(media_type="application/pdf", data="aGk=")
IMAGE = ImageContent(media_type="image/png", data="aGk=")
HELLO = AppendMessageCommand(principal=a_principal(KeyRole.RUNNER), thread_id=THREAD, role=Role.USER, content=(TEXT,))


async def append(threads: ThreadStore, command: AppendMessageCommand = HELLO) -> Message:
    return await AppendMessage(threads=threads, clock=FixedClock(), ids=SequentialIds()).execute(command)


@pytest.mark.parametrize(
    ("role", "content"),
    [(Role.USER, (TEXT,)), (Role.USER, (IMAGE,)), (Role.USER, (FILE,)), (Role.ASSISTANT, (TEXT,))],
    ids=["text of a user", "image of a user", "file of a user", "text of an assistant"],
)
async def test_a_message_is_stored_at_the_end_of_the_thread(role: Role, content: tuple[UserContent, ...]) -> None:
    threads, state = stored_threads(a_message(1, "before"), run=an_ended_run())

    message = await append(threads, replace(HELLO, role=role, content=content))

    assert state.threads[THREAD].messages[1:] == [message]
    assert (message.role, message.content, message.run_id, message.created_at) == (role, content, None, START)


@pytest.mark.parametrize(
    ("role", "content", "path"),
    [
        (Role.USER, (TextContent(text=" "),), "content"),
        (Role.SYSTEM, (TEXT,), "role"),
        (Role.TOOL, (TEXT,), "role"),
        (Role.ASSISTANT, (TEXT, IMAGE), "content.1"),
        (Role.ASSISTANT, (TEXT, FILE), "content.1"),
    ],
    ids=["nothing said", "the system", "a tool", "image of an assistant", "file of an assistant"],
)
async def test_a_message_that_does_not_belong_on_a_thread_is_refused_by_its_path(
    role: Role, content: tuple[UserContent, ...], path: str
) -> None:
    threads, state = stored_threads()

    with pytest.raises(ServiceError) as raised:
        await append(threads, replace(HELLO, role=role, content=content))

    assert (raised.value.code, [wrong.path for wrong in raised.value.violations]) == ("message_invalid", [path])
    assert state.threads[THREAD].messages == []


@pytest.mark.requirement("E5")
async def test_a_thread_with_an_unfinished_run_takes_no_message() -> None:
    threads, state = stored_threads(run=a_run())

    with pytest.raises(ServiceError) as raised:
        await append(threads)

    assert (raised.value.code, raised.value.extra) == ("thread_busy", {"run_id": RUN})
    assert state.threads[THREAD].messages == []


@pytest.mark.requirement("C4")
async def test_a_thread_in_quarantine_takes_no_message() -> None:
    threads, state = stored_threads(thread=replace(a_thread(), quarantine=a_quarantine()))

    with refused("thread_quarantined"):
        await append(threads)

    assert state.threads[THREAD].messages == []


@pytest.mark.requirement("C6")
async def test_a_thread_of_another_organization_is_not_found() -> None:
    threads, state = stored_threads()

    with refused("thread_not_found"):
        await append(threads, replace(HELLO, principal=a_stranger()))

    assert state.threads[THREAD].messages == []


@pytest.mark.requirement("C6")
async def test_a_viewer_says_nothing(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)

    with refused("role_insufficient"):
        await append(threads, replace(HELLO, principal=a_principal(KeyRole.VIEWER)))

    threads.append.assert_not_awaited()


async def test_a_message_that_cannot_be_stored_is_not_answered(mocker: MockerFixture) -> None:
    threads = mocker.create_autospec(ThreadStore, instance=True)
    threads.append.side_effect = storage_away()

    with refused("storage_unavailable"):
        await append(threads)
