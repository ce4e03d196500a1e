"""Answers chat completions, whole or streamed: both are views of the events of one run."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import msgspec
from litestar.response.base import ASGIResponse
from litestar.types import Receive

from application.mcp.oauth_client import PublicAddress
from application.runs.queries import GetRun, GetRunEvents
from application.runs.watch_run import WatchRun
from domain.identity.api_key import Principal
from domain.runs.events import RunEvent
from domain.runs.run import Run, RunStatus
from interfaces.http.openai.chat_runs import ChatRuns
from interfaces.http.openai.chat_schemas import ChatBody
from interfaces.http.openai.chat_views import (
    DeltaView,
    chunk_view,
    completion_view,
    finish_reason,
    tool_calls,
    usage_view,
)
from interfaces.http.openai.errors import NO_RETRY, run_error_view, stream_error
from interfaces.http.openai.ids import is_client_call, notice
from interfaces.http.openai.leaving import at_rest
from interfaces.http.openai.replies import Piece, PieceKind, Reply
from interfaces.http.runs.answer import Answer, run_location
from interfaces.http.runs.provider_words import told_run
from interfaces.http.runs.stored_events import stored_events
from interfaces.http.sse import EventStream, data_frame
from interfaces.http.stream_places import StreamPlaces

DONE = b"data: [DONE]\n\n"
_WITHOUT_ANSWER = (RunStatus.FAILED, RunStatus.CANCELLED)


class ChatCompletions:
    """Rules:
    - The texts of all turns are the answer; tools of the service are executed inside.
    - With a response format, the answer is the object and nothing else; it comes as one piece.
    - Pending calls of the client's functions end it with `tool_calls`.
    - Anything else that waits for people ends it with a text and a link, and `stop`.
    - A run that failed or was cancelled is an error, which clients do not repeat by themselves.
    - A client that leaves harms nothing: the run continues.
    """

    def __init__(
        self,
        *,
        chat_runs: ChatRuns,
        watch_run: WatchRun,
        get_run: GetRun,
        get_run_events: GetRunEvents,
        public_address: PublicAddress,
        places: StreamPlaces,
        heartbeat_s: float,
    ) -> None:
        self._chat_runs = chat_runs
        self._watch_run = watch_run
        self._get_run = get_run
        self._get_run_events = get_run_events
        self._address = public_address
        self._places = places
        self._heartbeat_s = heartbeat_s

    async def whole(self, principal: Principal, body: ChatBody, receive: Receive, *, is_repeated: bool) -> ASGIResponse:
        run_id, reply = self._chat_runs.new_id(), Reply()
        # One signal at the end costs less than one for each event.
        async with self._watch_run.listening(run_id) as woken:
            begun = await self._chat_runs.begin(principal, body, is_repeated=is_repeated, run_id=run_id)
            outcome = await at_rest(self._watch_run, principal, begun.run.id, receive, announced=run_id, woken=woken)
        reply.ended = None if outcome is None else outcome.run
        stored = stored_events(self._get_run_events, principal, begun.run.id, after_seq=begun.after_seq)
        pieces = [piece async for piece in self._pieces(principal, begun, reply, stored)]
        run = reply.ended or begun.run
        if run.status in _WITHOUT_ANSWER:
            status, error = run_error_view(told_run(principal, run))
            return json_response(error, status=status, headers={**run_location(run), **NO_RETRY})
        text = "".join(piece.text for piece in pieces if piece.kind is PieceKind.TEXT)
        reasoning = "".join(piece.text for piece in pieces if piece.kind is PieceKind.REASONING)
        return json_response(completion_view(run, body.model, text, reasoning, reply.spent), headers=run_location(run))

    async def stream(self, principal: Principal, body: ChatBody, *, is_repeated: bool) -> EventStream:
        with self._places.taken(principal) as place:
            begun = await self._chat_runs.begin(principal, body, is_repeated=is_repeated)
        frames = self._frames(principal, body, begun)
        return EventStream(frames, heartbeat_s=self._heartbeat_s, headers=run_location(begun.run), place=place)

    async def _frames(self, principal: Principal, body: ChatBody, begun: Answer) -> AsyncGenerator[bytes, None]:
        """Without `[DONE]` after an error, as clients of the protocol expect it."""
        try:
            async for frame in self._chunks(principal, body, begun):
                yield frame
        except Exception as error:  # noqa: BLE001 (logged, and told to the client)
            yield data_frame(stream_error(begun.run.id, error))

    async def _chunks(self, principal: Principal, body: ChatBody, begun: Answer) -> AsyncIterator[bytes]:
        reply = Reply()
        with_usage = body.stream_options is not None and body.stream_options.include_usage is True

        def framed(delta: DeltaView | None, finish: str | None = None) -> bytes:
            chunk = chunk_view(begun.run, body.model, delta, finish)
            if with_usage:
                chunk["usage"] = None if delta is not None else usage_view(reply.spent)
            return data_frame(chunk)

        yield framed({"role": "assistant", "content": ""})
        following = self._watch_run.follow(principal, begun.run.id, after_seq=begun.after_seq)
        async for piece in self._pieces(principal, begun, reply, following):
            yield framed(_delta(piece))
        run = reply.ended or begun.run
        if run.status in _WITHOUT_ANSWER:
            yield data_frame(run_error_view(told_run(principal, run))[1])
            return
        calls = tool_calls(run)
        if calls:
            yield framed({"tool_calls": [{"index": index, **call} for index, call in enumerate(calls)]})
        yield framed({}, finish_reason(run))
        if with_usage:
            yield framed(None)
        yield DONE

    async def _pieces(
        self, principal: Principal, begun: Answer, reply: Reply, batches: AsyncGenerator[tuple[RunEvent, ...], None]
    ) -> AsyncIterator[Piece]:
        """What the run says in these events, and what it waits for at their end."""
        is_object, has_text = begun.run.output_schema is not None, False
        async with aclosing(batches) as followed:
            async for events in followed:
                for piece in (piece for event in events for piece in reply.pieces(event)):
                    if piece.kind is PieceKind.TEXT and is_object:
                        continue
                    has_text = has_text or piece.kind is PieceKind.TEXT
                    yield piece
        run = reply.ended or await self._get_run.execute(principal, begun.run.id)
        reply.ended = run
        if is_object and run.output:
            yield _object(run)
        if run.status is RunStatus.REQUIRES_ACTION and not any(map(is_client_call, run.pending)):
            before = "\n\n" if has_text else ""
            yield Piece(kind=PieceKind.TEXT, text=before + notice(run, self._address.url))


def _object(run: Run) -> Piece:
    """The object of an answer by a schema, and nothing of the replies before it; the text of one
    that has none."""
    text = run.output or "" if run.output_json is None else msgspec.json.encode(run.output_json).decode()
    return Piece(kind=PieceKind.TEXT, text=text)


def _delta(piece: Piece) -> DeltaView:
    return {"content": piece.text} if piece.kind is PieceKind.TEXT else {"reasoning_content": piece.text}


def json_response(view: object, *, status: int = 200, headers: dict[str, str] | None = None) -> ASGIResponse:
    """A whole answer, for handlers that may also stream."""
    body = msgspec.json.encode(view)
    return ASGIResponse(body=body, status_code=status, headers=headers, media_type="application/json")
