"""Threads: beginning, reading, appending to and deleting conversations."""

from collections.abc import Awaitable, Callable

import pytest

from application.runs.ports import RunStore
from application.threads.append_message import AppendMessage, AppendMessageCommand
from application.threads.create_thread import CreateThread, CreateThreadCommand
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.get_thread import GetThread, GetThreadCommand
from application.threads.list_messages import ListMessages, ListMessagesCommand
from application.threads.list_threads import ListThreads, ListThreadsCommand
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.role import Role as KeyRole
from domain.threads.message import ImageContent, Message, Role, TextContent, UserContent
from domain.threads.thread import Thread
from infrastructure.events.wakeups import InProcessWakeups
from tests.builders import RUN, a_new_run, a_run, an_agent, an_audit_event
from tests.doubles.agents import InMemoryAgentStore
from tests.doubles.runs import InMemoryRunStore
from tests.doubles.state import InMemoryState
from tests.doubles.surroundings import SequentialIds, StepClock
from tests.doubles.threads import InMemoryThreadStore
from tests.unit.application.actors import a_principal, a_stranger

HELLO = (TextContent(text="hello"),)
IMAGE = ImageContent(media_type="image/png", data="aGk=")


class Threads:
    """The threads slice over in-memory tables."""

    def __init__(self) -> None:
        self.state = InMemoryState()
        store = InMemoryThreadStore(self.state)
        self.runs: RunStore = InMemoryRunStore(self.state, InProcessWakeups())
        clock, ids = StepClock(), SequentialIds()
        self.create = CreateThread(threads=store, clock=clock, ids=ids)
        self.get = GetThread(threads=store)
        self.list = ListThreads(threads=store)
        self.messages = ListMessages(threads=store)
        self.append = AppendMessage(threads=store, clock=clock, ids=ids)
        self.delete = DeleteThread(threads=store, clock=clock, ids=ids)

    async def begin(self) -> Thread:
        return await self.create.execute(CreateThreadCommand(principal=a_principal(), metadata={"ticket": 7}))

    async def begin_busy(self) -> Thread:
        """A thread with a queued run."""
        thread = await self.begin()
        await InMemoryAgentStore(self.state).add(an_agent(), an_audit_event())
        await self.runs.start(a_new_run(a_run(thread_id=thread.id)))
        return thread

    async def say(
        self, thread: Thread, *content: UserContent, role: Role = Role.USER, by: Principal | None = None
    ) -> Message:
        return await self.append.execute(
            AppendMessageCommand(
                principal=by or a_principal(), thread_id=thread.id, role=role, content=content or HELLO
            )
        )


@pytest.fixture
def threads() -> Threads:
    return Threads()


async def test_a_thread_keeps_its_metadata(threads: Threads) -> None:
    thread = await threads.begin()
    assert await threads.get.execute(GetThreadCommand(principal=a_principal(), thread_id=thread.id)) == thread
    assert thread.metadata == {"ticket": 7}


async def test_messages_are_listed_in_the_order_they_were_said(threads: Threads) -> None:
    thread = await threads.begin()
    await threads.say(thread, TextContent(text="one"))
    await threads.say(thread, TextContent(text="two"), role=Role.ASSISTANT)
    await threads.say(thread, TextContent(text="three"), IMAGE)
    page = await threads.messages.execute(ListMessagesCommand(principal=a_principal(), thread_id=thread.id))
    assert [(message.role, message.text, message.run_id) for message in page.items] == [
        (Role.USER, "one", None),
        (Role.ASSISTANT, "two", None),
        (Role.USER, "three", None),
    ]


@pytest.mark.parametrize(
    ("role", "content", "path"),
    [
        pytest.param(Role.USER, (TextContent(text=" "),), "content", id="nothing said"),
        pytest.param(Role.SYSTEM, HELLO, "role", id="the system"),
        pytest.param(Role.TOOL, HELLO, "role", id="a tool"),
        pytest.param(Role.ASSISTANT, (TextContent(text="see"), IMAGE), "content.1", id="an assistant's image"),
    ],
)
async def test_a_message_that_does_not_belong_is_refused_with_its_path(
    threads: Threads, role: Role, content: tuple[UserContent, ...], path: str
) -> None:
    thread = await threads.begin()
    with pytest.raises(ServiceError) as refused:
        await threads.say(thread, *content, role=role)
    assert refused.value.code == "message_invalid"
    assert [violation.path for violation in refused.value.violations] == [path]
    assert threads.state.threads[thread.id].messages == []


@pytest.mark.requirement("E5")
async def test_a_thread_with_an_unfinished_run_takes_no_message_and_is_not_deleted(threads: Threads) -> None:
    thread = await threads.begin_busy()
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: threads.say(thread),
        lambda: threads.delete.execute(DeleteThreadCommand(principal=a_principal(), thread_id=thread.id)),
    ]
    for attempt in attempts:
        with pytest.raises(ServiceError) as refused:
            await attempt()
        assert (refused.value.code, refused.value.extra) == ("thread_busy", {"run_id": RUN})
    assert threads.state.threads[thread.id].messages == []


async def test_a_deleted_thread_is_gone(threads: Threads) -> None:
    thread = await threads.begin()
    await threads.delete.execute(DeleteThreadCommand(principal=a_principal(), thread_id=thread.id))
    with pytest.raises(ServiceError) as refused:
        await threads.messages.execute(ListMessagesCommand(principal=a_principal(), thread_id=thread.id))
    assert refused.value.code == "thread_not_found"
    [entry] = threads.state.audit.values()
    assert (entry.action, entry.actor, entry.resource) == ("thread.deleted", a_principal().key_id, thread.id)


@pytest.mark.requirement("C6")
async def test_a_thread_of_another_organization_does_not_exist(threads: Threads) -> None:
    thread = await threads.begin()
    await threads.say(thread)
    stranger = a_stranger()
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: threads.get.execute(GetThreadCommand(principal=stranger, thread_id=thread.id)),
        lambda: threads.messages.execute(ListMessagesCommand(principal=stranger, thread_id=thread.id)),
        lambda: threads.say(thread, by=stranger),
        lambda: threads.delete.execute(DeleteThreadCommand(principal=stranger, thread_id=thread.id)),
    ]
    for attempt in attempts:
        with pytest.raises(ServiceError) as refused:
            await attempt()
        assert refused.value.code == "thread_not_found"
    assert (await threads.list.execute(ListThreadsCommand(principal=stranger))).items == ()
    assert len(threads.state.threads[thread.id].messages) == 1
    assert threads.state.audit == {}


@pytest.mark.requirement("C6")
async def test_a_viewer_reads_threads_and_changes_none(threads: Threads) -> None:
    thread = await threads.begin()
    viewer = a_principal(KeyRole.VIEWER)
    assert (await threads.list.execute(ListThreadsCommand(principal=viewer))).items == (thread,)
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: threads.create.execute(CreateThreadCommand(principal=viewer)),
        lambda: threads.say(thread, by=viewer),
        lambda: threads.delete.execute(DeleteThreadCommand(principal=viewer, thread_id=thread.id)),
    ]
    for attempt in attempts:
        with pytest.raises(ServiceError) as refused:
            await attempt()
        assert refused.value.kind is ErrorKind.FORBIDDEN
    assert list(threads.state.threads) == [thread.id]
