"""Threads: all of them with their quarantine, and the files of one."""

from collections.abc import AsyncIterator

from litestar import Response, get, post
from litestar.datastructures import UploadFile
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.plugins.htmx import HTMXHeaders
from litestar.response import Stream

from application.runs.ports import RunFilter
from application.runs.queries import ListRuns
from application.sources.add_source import AddSource, AddSourceCommand
from application.sources.delete_source import DeleteSource, DeleteSourceCommand
from application.sources.queries import ListSources, ReadSource
from application.system.pages import PageRequest
from application.threads.delete_thread import DeleteThread, DeleteThreadCommand
from application.threads.queries import GetThread, ListConversations, ListMessages
from application.threads.release_thread import ReleaseThread, ReleaseThreadCommand
from domain.errors import Violation, invalid
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.ids import SourceId, ThreadId
from interfaces.console.inbox_answers import is_from_inbox, settled
from interfaces.console.pages import Pages, in_a_line
from interfaces.console.requests import ConsoleRequest
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH
from interfaces.http.bodies import MAX_JSON_BYTES
from interfaces.http.sources.routes import content_response

PAGE = 50
PART_BYTES = 64 * 1024


@get("/threads")
async def show_threads(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_conversations: NamedDependency[ListConversations],
    q: FromQuery[str] = "",
    cursor: FromQuery[str] = "",
) -> Response[str]:
    """Newest first, those without a message too."""
    principal = request.principal
    found = await list_conversations.execute(principal, search=q, page=PageRequest(limit=PAGE, cursor=cursor or None))
    context = {
        "conversations": found.items,
        "next_cursor": found.next_cursor,
        "search": q,
        "may_release": principal.may(Permission.THREADS_RELEASE),
        "may_delete": principal.may(Permission.RUNS_START),
    }
    return pages.show(request, "threads.html", context)


@get("/threads/{thread_id:str}")
async def show_thread(
    *,
    request: ConsoleRequest,
    thread_id: FromPath[str],
    pages: NamedDependency[Pages],
    get_thread: NamedDependency[GetThread],
    list_messages: NamedDependency[ListMessages],
    list_sources: NamedDependency[ListSources],
    list_runs: NamedDependency[ListRuns],
) -> Response[str]:
    """Its state and its files, under its first words."""
    principal, wanted = request.principal, ThreadId(thread_id)
    thread = await get_thread.execute(principal, wanted)
    sources = await all_of(lambda page: list_sources.execute(principal, wanted, page))
    first = (await list_messages.execute(principal, wanted, PageRequest(limit=1))).items
    context = {
        "thread": thread,
        "opening": in_a_line(first[0].text) if first else "",
        "sources": sources,
        "may_release": principal.may(Permission.THREADS_RELEASE),
        "may_add": principal.may(Permission.RUNS_START),
        "may_delete": await _may_delete(principal, list_runs, wanted),
        "max_mib": MAX_JSON_BYTES // 2**20,
    }
    return pages.show(request, "thread.html", context)


@post("/threads/{thread_id:str}/release", status_code=200)
async def release_thread(
    request: ConsoleRequest,
    thread_id: FromPath[str],
    pages: NamedDependency[Pages],
    release_thread: NamedDependency[ReleaseThread],
) -> Response[str]:
    await release_thread.execute(ReleaseThreadCommand(principal=request.principal, thread_id=ThreadId(thread_id)))
    if is_from_inbox(request):
        return settled(pages, request, "The thread", "released")
    return _to(f"{PATH}/threads/{thread_id}")


@post("/threads/{thread_id:str}/delete", status_code=200)
async def delete_thread(
    request: ConsoleRequest, thread_id: FromPath[str], delete_thread: NamedDependency[DeleteThread]
) -> Response[str]:
    await delete_thread.execute(DeleteThreadCommand(principal=request.principal, thread_id=ThreadId(thread_id)))
    return _to(f"{PATH}/threads")


@post("/threads/{thread_id:str}/sources", status_code=200)
async def add_source(
    request: ConsoleRequest, thread_id: FromPath[str], add_source: NamedDependency[AddSource]
) -> Response[str]:
    """Store the chosen file."""
    file = (await request.form()).get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise invalid("source_missing", "Choose a file.", Violation(path="file", message="is missing"))

    async def content() -> AsyncIterator[bytes]:
        while part := await file.read(PART_BYTES):
            yield part

    await add_source.execute(
        AddSourceCommand(
            principal=request.principal, thread_id=ThreadId(thread_id), name=file.filename, content=content()
        )
    )
    return _to(f"{PATH}/threads/{thread_id}")


@post("/threads/{thread_id:str}/sources/{source_id:str}/delete", status_code=200)
async def delete_source(
    request: ConsoleRequest,
    thread_id: FromPath[str],
    source_id: FromPath[str],
    delete_source: NamedDependency[DeleteSource],
) -> Response[str]:
    await delete_source.execute(DeleteSourceCommand(principal=request.principal, source_id=SourceId(source_id)))
    return _to(f"{PATH}/threads/{thread_id}")


@get("/sources/{source_id:str}")
async def download_source(
    request: ConsoleRequest, source_id: FromPath[str], read_source: NamedDependency[ReadSource]
) -> Stream:
    return content_response(await read_source.execute(request.principal, SourceId(source_id)))


async def _may_delete(principal: Principal, list_runs: ListRuns, thread_id: ThreadId) -> bool:
    """Whether the principal may delete the thread and its files: runners where no other key has run
    agents, as far as the newest runs show."""
    if principal.may(Permission.RUNS_CONTROL) or not principal.may(Permission.RUNS_START):
        return principal.may(Permission.RUNS_START)
    runs = await list_runs.execute(principal, RunFilter(thread_id=thread_id), PageRequest())
    return all(run.requested_by == principal.key_id for run in runs.items)


def _to(path: str) -> Response[str]:
    return Response("", headers={HTMXHeaders.REDIRECT.value: path})
