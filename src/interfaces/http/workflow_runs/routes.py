"""Routes of runs of workflows."""

from typing import Annotated

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter

from application.runs.new_run import IdempotencyKey
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from application.workflows.ports import WorkflowRunFilter
from application.workflows.replay_workflow_run import ReplayWorkflowRun, ReplayWorkflowRunCommand
from application.workflows.resume_workflow_run import ResumeWorkflowRun, ResumeWorkflowRunCommand
from application.workflows.run_queries import GetWorkflowRun, ListWorkflowRuns
from application.workflows.start_workflow_run import StartWorkflowRun, StartWorkflowRunCommand
from application.workflows.stop_workflow_run import StopWorkflowRun, StopWorkflowRunCommand
from domain.ids import WorkflowId, WorkflowRunId
from domain.workflows.diagram import mermaid
from domain.workflows.run import WorkflowRunStatus
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import WorkflowPath, WorkflowRunPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.runs.schemas import digest_of
from interfaces.http.runs.starting import IdempotencyHeader
from interfaces.http.sse import EventStream, LastEventId, described_stream, sequence_after
from interfaces.http.workflow_runs.event_views import WorkflowStreamItem
from interfaces.http.workflow_runs.following import WorkflowRunStreams
from interfaces.http.workflow_runs.schemas import ReplayWorkflowRunBody, ResumeWorkflowRunBody, StartWorkflowRunBody
from interfaces.http.workflow_runs.views import (
    WorkflowRunPage,
    WorkflowRunView,
    workflow_run_outline,
    workflow_run_view,
)
from interfaces.http.workflows.routes import MERMAID

TAG = Tag(name="Workflow runs", description="Executions of workflows.")


@post(
    "/workflows/{workflow:str}/runs",
    summary="Run a workflow",
    status_code=202,
    responses=documented(403, 404, 409, 413),
)
async def start_workflow_run(
    *,
    request: ApiRequest,
    workflow: WorkflowPath,
    data: JSONBody[StartWorkflowRunBody],
    start_workflow_run: NamedDependency[StartWorkflowRun],
    idempotency_key: IdempotencyHeader = None,
) -> Response[WorkflowRunView]:
    """Requires the role runner. Executes in the background, at the workflow's newest version."""
    key = None
    if idempotency_key is not None:
        key = IdempotencyKey(key=idempotency_key, body_digest=digest_of(workflow, await request.json()))
    started = await start_workflow_run.execute(
        StartWorkflowRunCommand(principal=request.principal, workflow=workflow, input=data.to_input(), idempotency=key)
    )
    headers = {"Location": f"/v1/workflow-runs/{started.run.id}"}
    if not started.created:
        headers["Idempotent-Replayed"] = "true"
    return Response(workflow_run_view(started.run), status_code=202, headers=headers)


@get("/workflow-runs", summary="List workflow runs", responses=documented())
async def list_workflow_runs(
    *,
    request: ApiRequest,
    list_workflow_runs: NamedDependency[ListWorkflowRuns],
    workflow_id: Annotated[str | None, QueryParameter(description="Only runs of this workflow, by id.")] = None,
    status: Annotated[WorkflowRunStatus | None, QueryParameter(description="Only runs with this status.")] = None,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> WorkflowRunPage:
    """Newest first, without inputs, outputs and nodes: read one run for these."""
    wanted = WorkflowRunFilter(workflow_id=None if workflow_id is None else WorkflowId(workflow_id), status=status)
    page = PageRequest(limit=limit, cursor=cursor)
    return page_view(await list_workflow_runs.execute(request.principal, wanted, page), workflow_run_outline)


@get("/workflow-runs/{workflow_run:str}", summary="Read a workflow run", responses=documented(404))
async def get_workflow_run(
    request: ApiRequest, workflow_run: WorkflowRunPath, get_workflow_run: NamedDependency[GetWorkflowRun]
) -> WorkflowRunView:
    """With its nodes in their current state."""
    return workflow_run_view(await get_workflow_run.execute(request.principal, WorkflowRunId(workflow_run)))


@get(
    "/workflow-runs/{workflow_run:str}/diagram",
    summary="Draw a workflow run",
    media_type=MERMAID,
    responses=documented(404),
)
async def draw_workflow_run(
    request: ApiRequest, workflow_run: WorkflowRunPath, get_workflow_run: NamedDependency[GetWorkflowRun]
) -> Response[str]:
    """The workflow as a Mermaid flowchart, with nodes coloured by their status in this run."""
    run = await get_workflow_run.execute(request.principal, WorkflowRunId(workflow_run))
    definition = await get_workflow_run.definition(request.principal, run)
    statuses = {node_id: node.status for node_id, node in run.nodes.items()}
    return Response(mermaid(definition, statuses), media_type=MERMAID)


@get(
    "/workflow-runs/{workflow_run:str}/stream",
    summary="Stream a workflow run",
    responses={**documented(404), **described_stream(WorkflowStreamItem)},
)
async def stream_workflow_run(
    request: ApiRequest,
    workflow_run: WorkflowRunPath,
    workflow_run_streams: NamedDependency[WorkflowRunStreams],
    last_event_id: LastEventId = None,
) -> EventStream:
    """Server-sent events, from the beginning or after `Last-Event-ID`, until the run has ended or
    waits for a person."""
    after = sequence_after(last_event_id)
    return await workflow_run_streams.of(request.principal, WorkflowRunId(workflow_run), after_seq=after)


@post(
    "/workflow-runs/{workflow_run:str}/cancel",
    summary="Cancel a workflow run",
    status_code=200,
    responses=documented(403, 404),
)
async def cancel_workflow_run(
    request: ApiRequest, workflow_run: WorkflowRunPath, stop_workflow_run: NamedDependency[StopWorkflowRun]
) -> WorkflowRunView:
    """Requires the role runner for the caller's own runs, operator for others. Also cancels the
    runs of its agents; until they end, the response has `queued` or `in_progress`."""
    command = StopWorkflowRunCommand(principal=request.principal, run_id=WorkflowRunId(workflow_run))
    return workflow_run_view(await stop_workflow_run.execute(command))


@post(
    "/workflow-runs/{workflow_run:str}/resume",
    summary="Resume a workflow run",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def resume_workflow_run(
    request: ApiRequest,
    workflow_run: WorkflowRunPath,
    data: JSONBody[ResumeWorkflowRunBody],
    resume_workflow_run: NamedDependency[ResumeWorkflowRun],
) -> WorkflowRunView:
    """Requires the role runner for the caller's own runs, operator for others. Answers nodes
    that wait for a person, or resumes the suspended run of an agent."""
    command = ResumeWorkflowRunCommand(
        principal=request.principal,
        run_id=WorkflowRunId(workflow_run),
        answers=data.to_answers(),
        agent=data.to_agent(),
    )
    return workflow_run_view(await resume_workflow_run.execute(command))


@post(
    "/workflow-runs/{workflow_run:str}/replay",
    summary="Replay a workflow run from a node",
    status_code=202,
    responses=documented(403, 404, 409, 413),
)
async def replay_workflow_run(
    request: ApiRequest,
    workflow_run: WorkflowRunPath,
    data: JSONBody[ReplayWorkflowRunBody],
    replay_workflow_run: NamedDependency[ReplayWorkflowRun],
) -> Response[WorkflowRunView]:
    """Requires the role runner for the caller's own runs, operator for others. Starts a new run of
    the newest version with the same input. Nodes that ended well and do not come after the node are
    not executed again."""
    command = ReplayWorkflowRunCommand(
        principal=request.principal, run_id=WorkflowRunId(workflow_run), node_id=data.node_id, alone=data.alone
    )
    run = await replay_workflow_run.execute(command)
    return Response(workflow_run_view(run), status_code=202, headers={"Location": f"/v1/workflow-runs/{run.id}"})
