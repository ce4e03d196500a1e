"""Agents: the list, one agent with its tools and history, and stopping."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.plugins.htmx import HTMXHeaders

from application.agents.delete_agent import DeleteAgent, DeleteAgentCommand
from application.agents.update_agent import UpdateAgent, UpdateAgentCommand
from application.runs.cancel_runs import CancelRuns, CancelRunsCommand
from interfaces.console.agents.pages import AgentPages
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.console.toasts import toast
from interfaces.console_paths import PATH

AGENTS_PATH = f"{PATH}/agents"


@get("/agents")
async def show_agents(
    *,
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    return pages.show(request, "agents.html", await agent_pages.listed(request.principal, cursor))


@get("/agents/{agent_id:str}")
async def show_agent(
    *,
    request: ConsoleRequest,
    agent_id: FromPath[str],
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    person: Annotated[str, QueryParameter(name="as")] = "",
    at: Annotated[str, QueryParameter()] = "",
) -> Response[str]:
    """The agent, with what policy permits to a person at a time."""
    context = await agent_pages.of(request.principal, agent_id, person=person.strip(), at=at.strip())
    return pages.show(request, "agent.html", context)


@get("/agents/{agent_id:str}/history")
async def show_history(
    *,
    request: ConsoleRequest,
    agent_id: FromPath[str],
    pages: NamedDependency[Pages],
    agent_pages: NamedDependency[AgentPages],
    cursor: Annotated[str | None, QueryParameter()] = None,
) -> Response[str]:
    context = await agent_pages.history(request.principal, agent_id, cursor)
    return pages.show(request, "parts/agent_history.html", context)


@post("/agents/{agent_id:str}/enabled", status_code=200)
async def switch_agent(
    *, request: ConsoleRequest, agent_id: FromPath[str], data: Form, update_agent: NamedDependency[UpdateAgent]
) -> Response[str]:
    """Disable: no new runs, and runs in progress end at their next turn. Or enable again."""
    enabled = data.get("enabled") == "yes"
    agent = await update_agent.execute(
        UpdateAgentCommand(principal=request.principal, agent=agent_id, changes={"enabled": enabled})
    )
    return to_page(f"{AGENTS_PATH}/{agent.id}", said=f"The agent is {'enabled' if enabled else 'disabled'}.")


@post("/agents/{agent_id:str}/cancel-runs", status_code=200)
async def cancel_agent_runs(
    *,
    request: ConsoleRequest,
    agent_id: FromPath[str],
    pages: NamedDependency[Pages],
    cancel_runs: NamedDependency[CancelRuns],
) -> Response[str]:
    cancelled = await cancel_runs.execute(CancelRunsCommand(principal=request.principal, agent=agent_id))
    return pages.show(request, "parts/cancelled_runs.html", {"cancelled": cancelled})


@post("/agents/{agent_id:str}/delete", status_code=200)
async def delete_agent_page(
    *, request: ConsoleRequest, agent_id: FromPath[str], delete_agent: NamedDependency[DeleteAgent]
) -> Response[str]:
    await delete_agent.execute(DeleteAgentCommand(principal=request.principal, agent=agent_id))
    return to_page(AGENTS_PATH)


def to_page(path: str, *, said: str = "") -> Response[str]:
    """A response that redirects the browser."""
    return Response("", headers={HTMXHeaders.REDIRECT.value: path, **toast(said)})
