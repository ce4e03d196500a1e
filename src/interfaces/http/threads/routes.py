"""Routes of threads and their messages."""

from typing import Annotated

from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.threads.append_message import AppendMessage, AppendMessageCommand
from application.threads.create_thread import CreateThread, CreateThreadCommand
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.fork_thread import ForkThread, ForkThreadCommand
from application.threads.queries import GetThread, ListConversations, ListMessages
from application.threads.release_thread import ReleaseThread, ReleaseThreadCommand
from domain.ids import MessageId, ThreadId
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import ThreadPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.threads.schemas import AppendMessageBody, CreateThreadBody, ForkThreadBody
from interfaces.http.threads.views import (
    MessagePage,
    MessageView,
    ThreadPage,
    ThreadView,
    listed_thread_view,
    message_view,
    thread_view,
)

TAG = Tag(name="Threads", description="Conversations and their messages.")


@post("/threads", summary="Create a thread", responses=documented(403, 413))
async def create_thread(
    request: ApiRequest, create_thread: NamedDependency[CreateThread], data: JSONBody[CreateThreadBody | None] = None
) -> Response[ThreadView]:
    """Requires the role runner. The body is optional."""
    body = CreateThreadBody() if data is None else data
    thread = await create_thread.execute(
        CreateThreadCommand(principal=request.principal, metadata=body.to_metadata(), team=body.team)
    )
    return Response(thread_view(thread), headers={"Location": f"/v1/threads/{thread.id}"})


@get("/threads", summary="List threads", responses=documented())
async def list_threads(
    *,
    request: ApiRequest,
    list_conversations: NamedDependency[ListConversations],
    forked_from: Annotated[str | None, QueryParameter(description="Only forks of this thread.")] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> ThreadPage:
    """Newest first."""
    found = await list_conversations.execute(
        request.principal,
        forked_from=None if forked_from is None else ThreadId(forked_from),
        page=PageRequest(limit=limit, cursor=cursor),
    )
    return page_view(found, listed_thread_view)


@get("/threads/{thread_id:str}", summary="Read a thread", responses=documented(404))
async def get_thread(request: ApiRequest, thread_id: ThreadPath, get_thread: NamedDependency[GetThread]) -> ThreadView:
    """Without its messages."""
    return thread_view(await get_thread.execute(principal=request.principal, thread_id=ThreadId(thread_id)))


@delete("/threads/{thread_id:str}", summary="Delete a thread", responses=documented(403, 404, 409))
async def delete_thread(
    request: ApiRequest, thread_id: ThreadPath, delete_thread: NamedDependency[DeleteThread]
) -> None:
    """Requires the role runner. Deletes messages, runs and events too. Rejected while a run is
    unfinished."""
    await delete_thread.execute(DeleteThreadCommand(principal=request.principal, thread_id=ThreadId(thread_id)))


@get("/threads/{thread_id:str}/messages", summary="List the messages of a thread", responses=documented(404))
async def list_messages(
    *,
    request: ApiRequest,
    thread_id: ThreadPath,
    list_messages: NamedDependency[ListMessages],
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> MessagePage:
    """Oldest first."""
    return page_view(
        await list_messages.execute(
            principal=request.principal, thread_id=ThreadId(thread_id), page=PageRequest(limit=limit, cursor=cursor)
        ),
        message_view,
    )


@post("/threads/{thread_id:str}/messages", summary="Append a message", responses=documented(403, 404, 409, 413))
async def append_message(
    request: ApiRequest,
    thread_id: ThreadPath,
    data: JSONBody[AppendMessageBody],
    append_message: NamedDependency[AppendMessage],
) -> MessageView:
    """Requires the role runner. Starts no run. Rejected while a run of the thread is unfinished."""
    message = await append_message.execute(
        AppendMessageCommand(
            principal=request.principal,
            thread_id=ThreadId(thread_id),
            role=data.to_role(),
            content=data.to_content(),
        )
    )
    return message_view(message)


@post(
    "/threads/{thread_id:str}/release",
    summary="Release a thread from quarantine",
    status_code=200,
    responses=documented(403, 404, 409),
)
async def release_thread(
    request: ApiRequest, thread_id: ThreadPath, release_thread: NamedDependency[ReleaseThread]
) -> ThreadView:
    """Requires the role operator. A thread is quarantined when a canary token halted its run.
    After the release it accepts messages and runs again, and the waiting run starts."""
    command = ReleaseThreadCommand(principal=request.principal, thread_id=ThreadId(thread_id))
    return thread_view(await release_thread.execute(command))


@post("/threads/{thread_id:str}/fork", summary="Fork a thread", responses=documented(403, 404, 409, 413))
async def fork_thread(
    request: ApiRequest,
    thread_id: ThreadPath,
    fork_thread: NamedDependency[ForkThread],
    data: JSONBody[ForkThreadBody | None] = None,
) -> Response[ThreadView]:
    """Requires the role runner. Creates a thread with copies of the messages before one of them, to
    say that one differently: a run on the new thread does so. The thread itself stays as it is. Its
    sources are copied, too. The body is optional."""
    before = None if data is None or data.before_message_id is None else MessageId(data.before_message_id)
    forked = await fork_thread.execute(
        ForkThreadCommand(
            principal=request.principal,
            thread_id=ThreadId(thread_id),
            before=before,
            metadata=None if data is None else data.to_metadata(),
            with_sources=data is None or data.sources,
        )
    )
    thread = forked.thread
    return Response(thread_view(thread), headers={"Location": f"/v1/threads/{thread.id}"})
