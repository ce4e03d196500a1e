"""Routes of the queue: reading it, and requeuing runs that no longer progress."""

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.runs.queries import GetQueue
from application.runs.requeue_runs import RequeueRuns
from interfaces.http.problems import documented
from interfaces.http.queue.schemas import RequeueRunsBody
from interfaces.http.queue.views import QueueView, RequeuedRunsView, queue_view
from interfaces.http.requests import ApiRequest

TAG = Tag(name="Queue", description="Runs that wait for a worker, and runs in progress.")


@get("/queue", summary="Read the queue", responses=documented(403))
async def get_queue(
    request: ApiRequest,
    get_queue: NamedDependency[GetQueue],
    every: Annotated[
        bool, QueryParameter(name="all", description="Of all organizations. Requires a platform key.")
    ] = False,
) -> QueueView:
    """Sums, and a line for each agent and lane with queued runs or runs in progress: the 1,000 with
    most queued runs."""
    return queue_view(await get_queue.execute(request.principal, of_all=every))


@post(
    "/queue/requeue",
    summary="Requeue runs that no longer progress",
    status_code=200,
    responses=documented(403, 404, 413),
)
async def requeue_runs(
    request: ApiRequest, data: JSONBody[RequeueRunsBody], requeue_runs: NamedDependency[RequeueRuns]
) -> RequeuedRunsView:
    """Requires the role operator. Takes at most 100 runs in progress from their workers, longest
    without an event first. Other workers continue them; calls that are unsafe to repeat are not
    repeated. Runs that wait for a long tool call are among them. Runs of lost workers need no
    request."""
    return {"run_ids": list(await requeue_runs.execute(data.to_command(request.principal)))}
