"""Chat: conversations by their first words, their messages, and a message to an agent."""

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated

import msgspec
from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery, QueryParameter

from application.agents.queries import ListAgents
from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.runs.start_run import StartRun
from application.system.pages import PageRequest
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.fork_thread import ForkThread, ForkThreadCommand
from application.threads.ports import Conversation
from application.threads.queries import GetThread, ListConversations, ListMessages
from domain.errors import ErrorKind, ServiceError
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import MessageId, ThreadId
from domain.runs.run import Run
from domain.threads.thread import Thread
from interfaces.console.pages import HEADERS, Pages, asked, in_a_line
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.playground import start_from_form
from interfaces.console.whole_lists import all_of
from interfaces.http.threads.views import message_view

logger = logging.getLogger(__name__)

LISTED = 40
MESSAGES = 100

Search = Annotated[str, QueryParameter(name="q")]


class ChatPages:
    """Data of a conversation's page besides its messages."""

    def __init__(
        self,
        *,
        list_agents: ListAgents,
        list_conversations: ListConversations,
        list_runs: ListRuns,
        get_thread: GetThread,
        list_messages: ListMessages,
    ) -> None:
        self._list_agents = list_agents
        self._list_conversations = list_conversations
        self._list_runs = list_runs
        self._get_thread = get_thread
        self._list_messages = list_messages

    async def of(
        self, principal: Principal, *, thread_id: ThreadId | None, agent: str = "", shared: str = ""
    ) -> dict[str, object]:
        """A conversation, or a new one without `thread_id`; only to be read where a link with its
        place `shared` it. Raises NOT_FOUND."""
        thread: Thread | None = None
        if thread_id is not None:
            thread = await self._get_thread.execute(principal, thread_id)
        runs = [] if thread is None else await self.runs_to_follow(principal, thread.id)
        agents = await all_of(lambda page: self._list_agents.execute(principal=principal, page=page))
        return {
            "agents": [each for each in agents if each.config.enabled],
            "chosen": agent or (runs[-1].agent_id if runs else ""),
            "thread": thread,
            "opening": "" if thread is None else await self._opening(principal, thread.id, runs),
            "origin": None if thread is None else await self._origin(principal, thread),
            "shared": shared,
            "may_run": principal.may(Permission.RUNS_START),
            **await self.listed(principal, ""),
        }

    async def _opening(self, principal: Principal, thread_id: ThreadId, runs: Sequence[Run]) -> str:
        """The first words of the conversation, which a run that has not begun has not added yet;
        empty without any."""
        first = (await self._list_messages.execute(principal, thread_id, PageRequest(limit=1))).items
        return in_a_line(first[0].text) if first else asked(runs[0]) if runs else ""

    async def _origin(self, principal: Principal, thread: Thread) -> Thread | None:
        """The thread that it was forked from, if there still is one."""
        if thread.forked_from is None:
            return None
        try:
            return await self._get_thread.execute(principal, thread.forked_from.thread_id)
        except ServiceError as error:
            if error.kind is not ErrorKind.NOT_FOUND:
                raise
            return None

    async def forks(self, principal: Principal, thread_id: ThreadId) -> tuple[Conversation, ...]:
        """The newest forks of the thread."""
        page = PageRequest(limit=LISTED)
        return (await self._list_conversations.execute(principal, forked_from=thread_id, page=page)).items

    async def listed(self, principal: Principal, search: str) -> dict[str, object]:
        """The newest conversations with this text near their beginning."""
        page = await self._list_conversations.execute(principal, search=search, page=PageRequest(limit=LISTED))
        return {"conversations": [each for each in page.items if each.opening], "search": search}

    async def runs_to_follow(self, principal: Principal, thread_id: ThreadId) -> list[Run]:
        """Unfinished runs among the newest of the thread, oldest first; without any, the newest
        run."""
        newest = (await self._list_runs.execute(principal, RunFilter(thread_id=thread_id), PageRequest())).items
        return [run for run in reversed(newest) if not run.status.is_terminal] or list(newest[:1])


@get("/chat")
async def show_new_chat(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    chat_pages: NamedDependency[ChatPages],
    agent: FromQuery[str] = "",
) -> Response[str]:
    return pages.show(request, "chat.html", await chat_pages.of(request.principal, thread_id=None, agent=agent))


@get("/chat/{thread_id:str}")
async def show_chat(
    *,
    request: ConsoleRequest,
    thread_id: FromPath[str],
    pages: NamedDependency[Pages],
    chat_pages: NamedDependency[ChatPages],
    shared: FromQuery[str] = "",
) -> Response[str]:
    """`shared` is the message at which a link opens it, for reading."""
    data = await chat_pages.of(request.principal, thread_id=ThreadId(thread_id), shared=shared)
    return pages.show(request, "chat.html", data)


@get("/parts/conversations")
async def show_conversations(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    chat_pages: NamedDependency[ChatPages],
    q: Search = "",
    thread: FromQuery[str] = "",
) -> Response[str]:
    listed = await chat_pages.listed(request.principal, q)
    return pages.show(request, "parts/conversations.html", {**listed, "open_thread": thread})


@get("/chat/{thread_id:str}/messages")
async def read_messages(
    *,
    request: ConsoleRequest,
    thread_id: FromPath[str],
    list_messages: NamedDependency[ListMessages],
    chat_pages: NamedDependency[ChatPages],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[bytes]:
    """`{data, next_cursor, runs, forks}`: messages in order, the runs to follow one after the
    other, and the threads that say a message differently."""
    principal, thread = request.principal, ThreadId(thread_id)
    found = await list_messages.execute(principal, thread, PageRequest(limit=MESSAGES, cursor=cursor))
    page = {
        "data": [message_view(message) for message in found.items],
        "next_cursor": found.next_cursor,
        "runs": [{"id": run.id} for run in await chat_pages.runs_to_follow(principal, thread)],
        "forks": [
            {"thread_id": fork.thread.id, "before": fork.thread.forked_from.before}
            for fork in await chat_pages.forks(principal, thread)
            if fork.thread.forked_from is not None
        ],
    }
    return Response(msgspec.json.encode(page), media_type="application/json", headers=HEADERS)


@asynccontextmanager
async def deleted_unless_said(
    delete_thread: DeleteThread, principal: Principal, fork: ThreadId
) -> AsyncGenerator[None, None]:
    """Deletes the fork if its message is not said. Raises why it is not, also where the fork cannot
    be deleted."""
    try:
        yield
    except BaseException:
        try:
            await delete_thread.execute(DeleteThreadCommand(principal=principal, thread_id=fork))
        except Exception:
            logger.exception("fork of a refused message not deleted", extra={"thread_id": fork})
        raise


@post("/chat", status_code=200)
async def send_message(
    request: ConsoleRequest,
    start_run: NamedDependency[StartRun],
    fork_thread: NamedDependency[ForkThread],
    delete_thread: NamedDependency[DeleteThread],
) -> Response[bytes]:
    """Start a run with the message, on a fork where it is said instead of the one `before`;
    `{thread_id, run_id}`."""
    data, principal = await request.form(), request.principal
    if not data.get("before"):
        run = await start_from_form(request, start_run)
    else:
        place = MessageId(str(data["before"]))
        forked = await fork_thread.execute(
            ForkThreadCommand(principal=principal, thread_id=ThreadId(str(data.get("thread_id"))), before=place)
        )
        async with deleted_unless_said(delete_thread, principal, forked.thread.id):
            run = await start_from_form(request, start_run, forked)
    body = msgspec.json.encode({"thread_id": run.thread_id, "run_id": run.id})
    return Response(body, media_type="application/json", headers=HEADERS)
