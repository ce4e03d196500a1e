"""The first-run page: choose a model and an MCP server, make an agent, say hello."""

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.plugins.htmx import HTMXHeaders

from application.mcp.ports import ServerState
from application.runs.start_run import StartRun, StartRunCommand
from domain.identity.permission import Permission
from domain.threads.message import TextContent
from interfaces.console.faults import FormCheck
from interfaces.console.first_agent import FirstAgent, FirstAgentWanted
from interfaces.console.form_values import FormValues
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console_paths import PATH
from interfaces.starter_offers import MODELS, NO_SERVER, SERVERS, greeting, server_offer

_PROGRESS = "parts/first_agent_progress.html"


@get("/first-agent")
async def show_first_agent(request: ConsoleRequest, pages: NamedDependency[Pages]) -> Response[str]:
    request.principal.require(Permission.AGENTS_MANAGE)
    return pages.show(request, "first_agent.html", {"models": MODELS, "servers": (*SERVERS, NO_SERVER)})


@post("/first-agent", status_code=200)
async def create_first_agent(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], first_agent: NamedDependency[FirstAgent]
) -> Response[str]:
    """Make the agent. The answer waits for its server, then says hello."""
    form = FormValues(data)
    server = server_offer(form["server"])
    wanted = FirstAgentWanted(
        name=form["name"].strip(), model=form["model"], server=server, api_key=form["api_key"].strip()
    )
    with FormCheck() as check:
        agent = await first_agent.create(request.principal, wanted)
        told = {"agent": agent.id, "server": form["server"], "input": form["input"].strip() or greeting(server)}
        return pages.show(request, _PROGRESS, {**told, "install": None, "failure": ""})
    return check.shown(pages, request)


@post("/first-agent/hello", status_code=200)
async def say_hello(
    *,
    request: ConsoleRequest,
    data: Form,
    pages: NamedDependency[Pages],
    first_agent: NamedDependency[FirstAgent],
    start_run: NamedDependency[StartRun],
) -> Response[str]:
    """Start the first run and show it, once the server is installed."""
    form = FormValues(data)
    server = server_offer(form["server"])
    if server is not None:
        status = await first_agent.status(request.principal, server)
        if status.install or status.state is ServerState.NOT_INSTALLED:
            failure = "" if status.install else status.last_error or "It is not installed."
            told = {"agent": form["agent"], "server": server.name, "input": form["input"]}
            return pages.show(request, _PROGRESS, {**told, "install": status.install, "failure": failure})
    started = await start_run.execute(
        StartRunCommand(
            principal=request.principal, agent=form["agent"], input=(TextContent(text=form["input"]),), thread_id=None
        )
    )
    return Response("", headers={HTMXHeaders.REDIRECT.value: f"{PATH}/runs/{started.run.id}"})
