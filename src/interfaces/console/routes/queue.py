"""The queue: what waits by agent and lane, and cancelling it; and runs that no longer progress."""

from litestar import Response, get, post
from litestar.di import NamedDependency

from application.agents.name_agents import NameAgents
from application.runs.cancel_runs import CancelRuns
from application.runs.queries import GetQueue
from application.runs.queue_lines import QueueLine
from application.runs.requeue_runs import RequeueRuns
from domain.identity.api_key import Principal
from domain.identity.permission import Permission
from domain.json_value import JsonObject
from interfaces.console.pages import Pages
from interfaces.console.requests import ConsoleRequest
from interfaces.console.routes.sign_in import Form
from interfaces.http.bodies import decoded_body
from interfaces.http.queue.schemas import RequeueRunsBody
from interfaces.http.runs.schemas import CancelRunsBody

MOST_LINES = 200


async def _waiting(principal: Principal, lines: tuple[QueueLine, ...], name_agents: NameAgents) -> dict[str, object]:
    shown = lines[:MOST_LINES]
    return {
        "lines": shown,
        "more": len(lines) - len(shown),
        "queued": sum(line.queued for line in lines),
        "running": sum(line.running for line in lines),
        "oldest": min((line.oldest_queued_at for line in lines if line.oldest_queued_at is not None), default=None),
        "agent_names": await name_agents.execute(principal, (line.agent_id for line in shown)),
        "may_cancel": principal.may(Permission.RUNS_CONTROL),
    }


@get("/queue")
async def show_queue(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    get_queue: NamedDependency[GetQueue],
    name_agents: NamedDependency[NameAgents],
) -> Response[str]:
    lines = await get_queue.execute(request.principal)
    return pages.show(request, "queue.html", await _waiting(request.principal, lines, name_agents))


@get("/parts/queue")
async def show_queue_part(
    request: ConsoleRequest,
    pages: NamedDependency[Pages],
    get_queue: NamedDependency[GetQueue],
    name_agents: NamedDependency[NameAgents],
) -> Response[str]:
    lines = await get_queue.recent(request.principal)
    return pages.show(request, "parts/queue.html", await _waiting(request.principal, lines, name_agents))


@post("/queue/cancel", status_code=200)
async def cancel_line(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], cancel_runs: NamedDependency[CancelRuns]
) -> Response[str]:
    """Cancel the queued runs of an agent in a lane."""
    body: JsonObject = {"agent_id": data.get("agent_id", ""), "lane": data.get("lane", ""), "queued": True}
    cancelled = await cancel_runs.execute(decoded_body(CancelRunsBody, body).to_command(request.principal))
    return pages.show(request, "parts/cancelled_runs.html", {"cancelled": cancelled})


@post("/queue/requeue", status_code=200)
async def requeue_runs(
    request: ConsoleRequest, data: Form, pages: NamedDependency[Pages], requeue_runs: NamedDependency[RequeueRuns]
) -> Response[str]:
    """Let other workers continue runs that have had no event for the given minutes."""
    minutes = data.get("minutes", "")
    seconds = 60 * int(minutes) if minutes.isascii() and minutes.isdigit() and len(minutes) < 6 else 0
    command = decoded_body(RequeueRunsBody, {"idle_s": seconds}).to_command(request.principal)
    context = {"done": len(await requeue_runs.execute(command)), "action": "requeued", "failures": ()}
    return pages.show(request, "parts/bulk.html", context)
