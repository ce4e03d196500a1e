"""The playground: start a run of an agent, and reply on its thread."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.plugins.htmx import HTMXHeaders

from application.agents.queries import ListAgents
from application.runs.start_run import StartRun, StartRunCommand
from domain.ids import ThreadId
from domain.threads.message import TextContent
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
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
    return pages.show(request, "playground.html", {"agents": enabled, "chosen": agent})


@post("/playground", status_code=200)
async def start(request: ConsoleRequest, data: Form, start_run: NamedDependency[StartRun]) -> Response[str]:
    """Start the run on an existing or a new thread, and show it."""
    thread = data.get("thread_id")
    started = await start_run.execute(
        StartRunCommand(
            principal=request.principal,
            agent=data.get("agent", ""),
            input=(TextContent(text=data.get("input", "")),),
            thread_id=ThreadId(thread) if thread else None,
        )
    )
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/runs/{started.run.id}"})
