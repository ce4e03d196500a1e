"""The playground: start a run of an agent, and reply on its thread."""

from litestar import Response, get, post
from litestar.datastructures import FormMultiDict, UploadFile
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.agents.queries import ListAgents
from application.runs.start_run import StartRun, StartRunCommand
from application.threads.ports import ForkedThread
from domain.identity.permission import Permission
from domain.ids import ThreadId
from domain.runs.run import Run
from domain.threads.attachments import attachment, require_few_attachments
from domain.threads.message import FileContent, ImageContent, TextContent
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.whole_lists import all_of
from interfaces.console_paths import PATH


@get("/playground")
async def show_playground(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    list_agents: NamedDependency[ListAgents],
    agent: FromQuery[str] = "",
) -> Response[str]:
    agents = await all_of(lambda page: list_agents.execute(principal=request.principal, page=page))
    enabled = [each for each in agents if each.config.enabled]
    may_run = request.principal.may(Permission.RUNS_START)
    return pages.show(request, "playground.html", {"agents": enabled, "chosen": agent, "may_run": may_run})


@post("/playground", status_code=200)
async def start(request: ConsoleRequest, start_run: NamedDependency[StartRun]) -> Response[str]:
    """Start the run and show it; one on an existing thread in its conversation."""
    run = await start_from_form(request, start_run)
    is_reply = bool(_text(await request.form(), "thread_id"))
    target = f"{PATH}/chat/{run.thread_id}" if is_reply else f"{PATH}/runs/{run.id}"
    return Response("", headers={HTMXHeaders.REDIRECT.value: target})


async def start_from_form(request: ConsoleRequest, start_run: StartRun, forked: ForkedThread | None = None) -> Run:
    """The run that the form asks for, on its thread or a new one; on a fork with the attachments of
    the message that it replaces."""
    data = await request.form()
    thread = _text(data, "thread_id") if forked is None else forked.thread.id
    kept = () if forked is None or forked.replaced is None else forked.replaced.attachments
    files = [*kept, *await _files(data)]
    require_few_attachments(files, "input")
    started = await start_run.execute(
        StartRunCommand(
            principal=request.principal,
            agent=_text(data, "agent"),
            input=(TextContent(text=_text(data, "input")), *files),
            thread_id=ThreadId(thread) if thread else None,
        )
    )
    return started.run


def _text(data: FormMultiDict, name: str) -> str:
    value = data.get(name, "")
    return value if isinstance(value, str) else ""


async def _files(data: FormMultiDict) -> list[ImageContent | FileContent]:
    """The chosen files; none has been chosen in a field without a name of a file."""
    chosen = [file for file in data.getall("files", []) if isinstance(file, UploadFile)]
    return [attachment(file.filename, await file.read()) for file in chosen]
