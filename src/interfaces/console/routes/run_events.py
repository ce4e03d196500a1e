"""Events of a run: stored ones at once, then new ones."""

import logging
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Annotated, cast

import msgspec
from litestar import Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from application.runs.queries import GetRun, GetRunEvents
from application.runs.watch_run import WatchRun
from domain.errors import ServiceError
from domain.ids import RunId
from domain.json_value import JsonObject
from domain.runs.events import RunEvent, RunEventType
from interfaces.console.pages import HEADERS
from interfaces.console.requests import ConsoleRequest
from interfaces.http.runs.frames import EventFrames
from interfaces.http.runs.views import event_json
from interfaces.http.sse import EventStream, end_frame, sequence_after
from interfaces.http.stream_places import StreamPlaces

logger = logging.getLogger(__name__)

PAGE = 2_000

AfterSeq = Annotated[int, QueryParameter(name="after", ge=0, le=2**53)]
"""Seq of the last event on the page."""


@get("/runs/{run_id:str}/events")
async def read_events(
    request: ConsoleRequest,
    run_id: FromPath[str],
    get_run: NamedDependency[GetRun],
    get_run_events: NamedDependency[GetRunEvents],
    after: AfterSeq = 0,
) -> Response[bytes]:
    """`{data, last_seq, more, status}`: events in order, without those superseded by later ones.
    `last_seq` is where to continue; an ended run without further events needs no stream."""
    principal = request.principal
    run = await get_run.execute(principal, RunId(run_id))
    found = await get_run_events.execute(principal, run.id, after_seq=after, limit=PAGE)
    events = found.items
    page = {
        "data": list(_needed(events)),
        "last_seq": events[-1].seq if events else after,
        "more": found.next_cursor is not None,
        "status": run.status.value,
        "is_over": run.status.is_terminal,
    }
    return Response(msgspec.json.encode(page), media_type="application/json", headers=HEADERS)


@get("/runs/{run_id:str}/raw")
async def read_raw_events(
    request: ConsoleRequest,
    run_id: FromPath[str],
    get_run: NamedDependency[GetRun],
    get_run_events: NamedDependency[GetRunEvents],
    first: Annotated[int | None, QueryParameter(ge=1, le=PAGE)] = None,
) -> Stream:
    """All stored events or the `first` ones, one JSON object a line."""
    principal = request.principal
    run = await get_run.execute(principal, RunId(run_id))

    async def lines() -> AsyncGenerator[bytes, None]:
        after: int | None = 0
        while after is not None:
            found = await get_run_events.execute(principal, run.id, after_seq=after, limit=first or PAGE)
            yield b"".join(msgspec.json.encode(event_json(event)) + b"\n" for event in found.items)
            after = None if first or found.next_cursor is None else int(found.next_cursor)

    return Stream(lines(), media_type="text/plain; charset=utf-8", headers=HEADERS)


@get("/runs/{run_id:str}/stream")
async def stream_run(
    *,
    request: ConsoleRequest,
    run_id: FromPath[str],
    get_run: NamedDependency[GetRun],
    watch_run: NamedDependency[WatchRun],
    event_frames: NamedDependency[EventFrames],
    stream_places: NamedDependency[StreamPlaces],
    heartbeat_s: NamedDependency[float],
    after: AfterSeq = 0,
) -> EventStream:
    """New events until the run has ended, also beyond points where it waits."""
    principal = request.principal
    run = await get_run.execute(principal, RunId(run_id))
    seq = max(after, sequence_after(request.headers.get("Last-Event-ID")))

    async def frames() -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(watch_run.follow(principal, run.id, after_seq=seq, to_the_end=True)) as followed:
                async for events in followed:
                    yield event_frames.of(events)
            yield end_frame((await get_run.execute(principal, run.id)).status)
        except ServiceError as error:
            logger.info("stream of the console ended by the server", extra={"run_id": run.id, "code": error.code})

    return EventStream(frames(), heartbeat_s=heartbeat_s, place=stream_places.take(principal))


def _needed(events: Iterable[RunEvent]) -> Iterator[JsonObject]:
    """Events without deltas of complete messages and progress of finished calls."""
    told = list(events)
    whole = {
        cast(JsonObject, event.data["message"])["id"] for event in told if event.type is RunEventType.MESSAGE_COMPLETED
    }
    over = {event.data["tool_call_id"] for event in told if event.type in _CALL_ENDS}
    for event in told:
        if event.type is RunEventType.MESSAGE_DELTA and event.data["message_id"] in whole:
            continue
        if event.type is RunEventType.TOOL_PROGRESS and event.data["tool_call_id"] in over:
            continue
        yield event_json(event)


_CALL_ENDS = frozenset({RunEventType.TOOL_EXECUTED, RunEventType.TOOL_FAILED, RunEventType.TOOL_BLOCKED})
