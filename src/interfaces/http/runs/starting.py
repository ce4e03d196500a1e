"""Routes that start a run: in the background, waiting, or streaming; on an existing or a new
thread."""

from typing import Annotated

from litestar import Response, post
from litestar.di import NamedDependency
from litestar.params import HeaderParameter, JSONBody

from application.runs.retry_run import RetryRun, RetryRunCommand
from application.runs.start_run import StartRun, StartRunCommand
from domain.ids import RunId
from interfaces.http.paths import OptionalThreadPath, RunPath
from interfaces.http.problems import documented
from interfaces.http.requests import ApiRequest
from interfaces.http.runs.event_views import RunStreamItem
from interfaces.http.runs.following import RunStreams, RunWaits, run_headers
from interfaces.http.runs.schemas import RunBody, digest_of
from interfaces.http.runs.views import RunView, RunWithMessagesView, run_view
from interfaces.http.sse import EventStream, LastEventId, described_stream, sequence_after
from interfaces.request_notes import notes_of

IdempotencyHeader = Annotated[
    str | None,
    HeaderParameter(
        name="Idempotency-Key",
        min_length=1,
        max_length=255,
        description="The same key with the same body returns the same run for 24 hours.",
    ),
]


@post(
    ["/runs", "/threads/{thread_id:str}/runs"],
    summary="Start a run",
    status_code=202,
    responses=documented(403, 404, 409, 413),
)
async def start_run(
    *,
    request: ApiRequest,
    data: JSONBody[RunBody],
    start_run: NamedDependency[StartRun],
    thread_id: OptionalThreadPath = None,
    idempotency_key: IdempotencyHeader = None,
) -> Response[RunView]:
    """Requires the role runner. The run executes in the background; without a thread a new one
    is created."""
    started = await start_run.execute(await _command(request, data, thread_id, idempotency_key))
    return Response(run_view(started.run, request.principal.reads_as), headers=run_headers(started))


@post(
    ["/runs/wait", "/threads/{thread_id:str}/runs/wait"],
    summary="Start a run and wait for it",
    status_code=200,
    responses=documented(403, 404, 409, 413),
)
async def start_run_and_wait(
    *,
    request: ApiRequest,
    data: JSONBody[RunBody],
    run_waits: NamedDependency[RunWaits],
    thread_id: OptionalThreadPath = None,
    idempotency_key: IdempotencyHeader = None,
) -> Response[RunWithMessagesView]:
    """Responds when the run has ended or requires action. A client that disconnects does not
    stop the run."""
    run_id = run_waits.new_id() if idempotency_key is None else None
    command = await _command(request, data, thread_id, idempotency_key, run_id=run_id)
    notes_of(request.scope).waits_for = run_id
    started, view = await run_waits.of_new(command, request.receive)
    return Response(view, headers=run_headers(started))


@post(
    ["/runs/stream", "/threads/{thread_id:str}/runs/stream"],
    summary="Start a run and stream its events",
    status_code=200,
    responses={**documented(403, 404, 409, 413), **described_stream(RunStreamItem)},
)
async def start_run_and_stream(
    *,
    request: ApiRequest,
    data: JSONBody[RunBody],
    run_streams: NamedDependency[RunStreams],
    thread_id: OptionalThreadPath = None,
    idempotency_key: IdempotencyHeader = None,
    last_event_id: LastEventId = None,
) -> EventStream:
    """Server-sent events until the run has ended or requires action. Resume an interrupted
    stream at `/v1/runs/{id}/stream`."""
    after_seq = sequence_after(last_event_id)
    command = await _command(request, data, thread_id, idempotency_key)
    return await run_streams.of_new(command, after_seq=after_seq)


@post(
    "/runs/{run_id:str}/retry",
    summary="Retry a failed run",
    status_code=202,
    responses=documented(403, 404, 409),
)
async def retry_run(
    *,
    request: ApiRequest,
    run_id: RunPath,
    retry_run: NamedDependency[RetryRun],
    idempotency_key: IdempotencyHeader = None,
) -> Response[RunView]:
    """A new run continues the thread from the last step that the failed run has stored; its
    `retry_of` is the failed run. That run must be the newest of its thread. A runner retries its
    own runs, an operator any."""
    started = await retry_run.execute(
        RetryRunCommand(
            principal=request.principal,
            run_id=RunId(run_id),
            idempotency_key=idempotency_key,
            body_digest=digest_of(None, {"retry_of": run_id}),
        )
    )
    return Response(run_view(started.run, request.principal.reads_as), headers=run_headers(started))


async def _command(
    request: ApiRequest,
    body: RunBody,
    thread_id: str | None,
    idempotency_key: str | None,
    *,
    run_id: RunId | None = None,
) -> StartRunCommand:
    digest = "" if idempotency_key is None else digest_of(thread_id, await request.json())
    return body.to_command(
        request.principal, thread_id, idempotency_key=idempotency_key, body_digest=digest, run_id=run_id
    )
