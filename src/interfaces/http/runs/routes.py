"""Routes of existing runs: reading, waiting, streaming, cancelling, resuming."""

from typing import Annotated

from litestar import get, post
from litestar.di import NamedDependency
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Tag
from litestar.params import JSONBody, QueryParameter
from litestar.response import Stream

from application.agents.name_agents import NameAgents
from application.runs.cancel_run import CancelRun, CancelRunCommand
from application.runs.cancel_runs import CancelRuns
from application.runs.ports import RunFilter, RunOrder
from application.runs.queries import CountRuns, ExportRuns, GetRun, GetRunEvents, ListRuns
from application.runs.resume_run import ResumeRun, ResumeRunCommand
from application.system.pages import DEFAULT_PAGE_SIZE, PageRequest
from domain.errors import Violation, invalid
from domain.ids import RunId
from interfaces.http.page_views import page_view
from interfaces.http.paging import PageCursor, PageLimit
from interfaces.http.paths import RunPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.runs.event_views import RunStreamItem
from interfaces.http.runs.export import ExportFormat, exported
from interfaces.http.runs.filters import FILTERED
from interfaces.http.runs.following import RunStreams, RunWaits
from interfaces.http.runs.schemas import CancelRunsBody, ResumeRunBody
from interfaces.http.runs.starting import (
    retry_run,
    start_run,
    start_run_and_stream,
    start_run_and_wait,
)
from interfaces.http.runs.views import (
    CancelledRunsView,
    EventsView,
    RunCountView,
    RunPage,
    RunView,
    RunWithMessagesView,
    events_view,
    listed_run_view,
    run_view,
)
from interfaces.http.sse import EventStream, LastEventId, described_stream, parsed_sequence, sequence_after
from interfaces.request_notes import notes_of

MAX_WAIT_S = 3600.0

TAG = Tag(name="Runs", description="Executions of agents on threads: start, follow, resume, retry, cancel.")


RunOrderParameter = Annotated[
    RunOrder,
    QueryParameter(
        description="`longest`, `costliest` and `most_tokens` sort the organization's newest 10,000 runs (created before "
        "`until`)."
    ),
]


@get("/runs", summary="List runs", responses=documented(), dependencies=FILTERED)
async def list_runs(
    *,
    request: ApiRequest,
    list_runs: NamedDependency[ListRuns],
    wanted: NamedDependency[RunFilter],
    order: RunOrderParameter = RunOrder.NEWEST,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> RunPage:
    """Newest first, or in another `order`. All conditions must hold. With `model`, with
    `started_by` beside `agent_id`, `error` or the status of an ended run, and with `error` beside
    `agent_id` or the status of a run that ended without one, a page has what is found among the
    next 10,000 runs: it may have fewer runs than `limit`, or none, and still a `next_cursor`."""
    found = await list_runs.execute(request.principal, wanted, PageRequest(limit=limit, cursor=cursor), order)
    return page_view(found, lambda run: listed_run_view(run, request.principal.reads_as))


@get("/runs/count", summary="Count runs", responses=documented(), dependencies=FILTERED)
async def count_runs(
    request: ApiRequest, count_runs: NamedDependency[CountRuns], wanted: NamedDependency[RunFilter]
) -> RunCountView:
    """How many runs meet all conditions, counted up to 1,000. With `search`, `tool`, `metadata` or
    `model`, with `started_by` beside `agent_id`, `error` or the status of an ended run, and with
    `error` beside `agent_id` or the status of a run that ended without one, they are counted among
    the organization's 10,000 newest runs (before `until`)."""
    found = await count_runs.execute(request.principal, wanted)
    return {"count": found.number, "has_more": found.has_more}


@get(
    "/runs/export",
    summary="Export runs",
    responses={
        200: ResponseSpec(
            data_container=str,
            description="`ndjson`: one line of JSON per run, as in the list. `csv`: a table with one line per run.",
            media_type=ExportFormat.NDJSON.media_type,
            generate_examples=False,
        ),
        **documented(),
    },
    dependencies=FILTERED,
)
async def export_runs(
    *,
    request: ApiRequest,
    export_runs: NamedDependency[ExportRuns],
    name_agents: NamedDependency[NameAgents],
    wanted: NamedDependency[RunFilter],
    order: RunOrderParameter = RunOrder.NEWEST,
    format: Annotated[ExportFormat, QueryParameter(description="`ndjson` or `csv`.")] = ExportFormat.NDJSON,
) -> Stream:
    """All runs that meet all conditions, as a file. With an `order` by a figure, those of the
    newest 10,000 runs that were created before the export began; a run whose figure changes
    meanwhile may be missing, or be there twice."""
    principal = request.principal
    return exported(
        export_runs.execute(principal, wanted, order),
        format,
        reads_as=principal.reads_as,
        names=lambda agents: name_agents.execute(principal, agents),
    )


@get("/runs/{run_id:str}", summary="Read a run", responses=documented(404))
async def get_run(request: ApiRequest, run_id: RunPath, get_run: NamedDependency[GetRun]) -> RunView:
    """The current state of the run."""
    return run_view(await get_run.execute(request.principal, RunId(run_id)), request.principal.reads_as)


@get("/runs/{run_id:str}/wait", summary="Wait for a run", responses=documented(404))
async def wait_for_run(
    request: ApiRequest,
    run_id: RunPath,
    run_waits: NamedDependency[RunWaits],
    timeout_s: Annotated[
        float | None, QueryParameter(ge=0, le=MAX_WAIT_S, description="Respond after this time at the latest.")
    ] = None,
) -> RunWithMessagesView:
    """Responds when the run has ended or requires action, or with its current state after
    `timeout_s`."""
    notes_of(request.scope).waits_for = RunId(run_id)
    return await run_waits.of_existing(request.principal, RunId(run_id), request.receive, timeout_s=timeout_s)


@get(
    "/runs/{run_id:str}/stream",
    summary="Stream the events of a run",
    responses={**documented(404), **described_stream(RunStreamItem)},
)
async def stream_run(
    request: ApiRequest,
    run_id: RunPath,
    run_streams: NamedDependency[RunStreams],
    last_event_id: LastEventId = None,
) -> EventStream:
    """Stored events first, then new ones, until the run has ended or requires action."""
    after_seq = sequence_after(last_event_id)
    return await run_streams.of_existing(request.principal, RunId(run_id), after_seq=after_seq)


@get("/runs/{run_id:str}/events", summary="List the events of a run", responses=documented(404))
async def list_run_events(
    *,
    request: ApiRequest,
    run_id: RunPath,
    get_run_events: NamedDependency[GetRunEvents],
    after: Annotated[int, QueryParameter(ge=0, le=2**53, description="A seq. Later events are listed.")] = 0,
    limit: PageLimit = DEFAULT_PAGE_SIZE,
    cursor: PageCursor = None,
) -> EventsView:
    """In order. `next_cursor` is the seq to continue after, null if there are no further events
    yet."""
    after_seq = after if cursor is None else _seq_of(cursor)
    events = await get_run_events.execute(request.principal, RunId(run_id), after_seq=after_seq, limit=limit)
    return events_view(events)


@post(
    "/runs/cancel",
    summary="Cancel every unfinished run of an agent, of a server's users, or of the organization",
    status_code=200,
    responses=documented(403, 404, 413),
)
async def cancel_runs(
    request: ApiRequest, data: JSONBody[CancelRunsBody], cancel_runs: NamedDependency[CancelRuns]
) -> CancelledRunsView:
    """Requires the role operator. Runs in progress end `cancelled` as soon as their workers have
    stopped. Runs started meanwhile are not cancelled: disable the agent first to prevent them."""
    done = await cancel_runs.execute(data.to_command(request.principal))
    return {"cancelled": done.cancelled, "stopping": done.stopping}


@post("/runs/{run_id:str}/cancel", summary="Cancel a run", status_code=200, responses=documented(403, 404))
async def cancel_run(request: ApiRequest, run_id: RunPath, cancel_run: NamedDependency[CancelRun]) -> RunView:
    """A run in progress ends `cancelled` as soon as its worker has stopped. A runner cancels its
    own runs, an operator any."""
    run = await cancel_run.execute(CancelRunCommand(principal=request.principal, run_id=RunId(run_id)))
    return run_view(run, request.principal.reads_as)


@post(
    "/runs/{run_id:str}/resume",
    summary="Resume a run that requires action",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def resume_run(
    request: ApiRequest,
    run_id: RunPath,
    data: JSONBody[ResumeRunBody],
    resume_run: NamedDependency[ResumeRun],
) -> RunView:
    """Accepts results of client tools, answers to requests of MCP servers, and decisions about
    calls that require approval. The run resumes once no call is pending."""
    command = ResumeRunCommand(
        principal=request.principal,
        run_id=RunId(run_id),
        tool_results=data.to_results(),
        approvals=data.to_decisions(),
    )
    return run_view(await resume_run.execute(command), request.principal.reads_as)


def _seq_of(cursor: str) -> int:
    seq = parsed_sequence(cursor)
    if seq is None:
        raise invalid(
            "cursor_invalid",
            "The cursor is not from this list.",
            Violation(path="cursor", message="must be the next_cursor of the previous page"),
        )
    return seq


__all__ = ["TAG", "retry_run", "start_run", "start_run_and_stream", "start_run_and_wait"]
