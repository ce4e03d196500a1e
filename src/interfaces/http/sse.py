"""Server-sent events (WHATWG HTML, 9.2): a run's events as frames, sent with a heartbeat until the
client leaves."""

import asyncio
import weakref
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from litestar.openapi.datastructures import ResponseSpec
from litestar.openapi.spec import Example
from litestar.params import HeaderParameter
from litestar.response.streaming import ASGIStreamingResponse
from litestar.types import Receive, Send

from domain.errors import Violation, invalid
from domain.runs.run import RunStatus
from domain.workflows.run import WorkflowRunStatus
from interfaces.disconnects import client_left
from interfaces.http.stream_places import StreamPlace

HEARTBEAT = b": keep-alive\n\n"
_EXAMPLE = (
    "id: 12\nevent: run.completed\n"
    'data: {"seq":12,"type":"run.completed","run_id":"run_…","at":"2026-01-01T12:00:00.000000Z"}\n\n'
    'event: end\ndata: {"type":"end","status":"completed"}\n\n'
)
_MAX_SEQ = 2**63 - 1

LastEventId = Annotated[
    str | None,
    HeaderParameter(
        name="Last-Event-ID", description="The `id` of the last event received. The stream resumes after it."
    ),
]


def sequence_after(last_event_id: str | None) -> int:
    """The seq after which to resume, 0 for the beginning. Raises INVALID
    `last_event_id_invalid`."""
    if last_event_id is None:
        return 0
    seq = parsed_sequence(last_event_id.strip())
    if seq is None:
        raise invalid(
            "last_event_id_invalid",
            "The Last-Event-ID is not the id of an event.",
            Violation(path="Last-Event-ID", message="must be a whole number, as in the `id` of an event"),
        )
    return seq


def parsed_sequence(text: str) -> int | None:
    """The seq in the text; None if it is not a valid seq."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_SEQ))):
        return None
    seq = int(text)
    return seq if seq <= _MAX_SEQ else None


def data_frame(value: Mapping[str, object]) -> bytes:
    """A frame of data alone, as other vendors' protocols have them."""
    return b"data: %s\n\n" % msgspec.json.encode(value)


def end_frame(status: RunStatus | WorkflowRunStatus) -> bytes:
    """The last frame of a stream, without id: a client that reconnects resumes after the last
    event."""
    return b"event: end\ndata: %s\n\n" % msgspec.json.encode({"type": "end", "status": status.value})


def described_stream(items: Any) -> dict[int, ResponseSpec]:
    """The description of a stream in the OpenAPI document. `items` is the shape of an event's
    data."""
    return {
        200: ResponseSpec(
            data_container=items,
            description="Server-sent events: `id` is the seq, `event` the type, `data` an object of this schema as JSON. "
            "The last event is `end`, without id.",
            media_type="text/event-stream",
            generate_examples=False,
            examples=[Example(summary="The end of a run", value=_EXAMPLE)],
        )
    }


class EventStream(ASGIStreamingResponse):
    """Sends frames as they arrive, and a comment after each `heartbeat_s` of silence. Stops when
    the client disconnects. Leaves its `place`, also when it is never sent."""

    def __init__(
        self,
        frames: AsyncGenerator[bytes, None],
        *,
        heartbeat_s: float,
        headers: dict[str, str] | None = None,
        place: StreamPlace | None = None,
    ) -> None:
        super().__init__(
            iterator=frames,
            media_type="text/event-stream",
            status_code=200,
            headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **(headers or {})},
        )
        self._frames = frames
        self._heartbeat_s = heartbeat_s
        self._sent_at = 0.0
        self._leave = None if place is None else weakref.finalize(self, place.leave)

    async def send_body(self, send: Send, receive: Receive) -> None:
        """Frames and heartbeats are whole messages, so they cannot be interleaved."""
        clock = asyncio.get_running_loop().time
        self._sent_at = clock()
        sending = asyncio.create_task(self._send_frames(send))
        leaving = asyncio.create_task(client_left(receive))
        try:
            while True:
                quiet_s = max(0.0, self._sent_at + self._heartbeat_s - clock())
                done, _ = await asyncio.wait({sending, leaving}, timeout=quiet_s, return_when=asyncio.FIRST_COMPLETED)
                if done:
                    break
                if clock() - self._sent_at >= self._heartbeat_s:
                    self._sent_at = clock()
                    await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait({sending, leaving})
            if self._leave is not None:
                self._leave()
        if not sending.cancelled():
            sending.result()

    async def _send_frames(self, send: Send) -> None:
        clock = asyncio.get_running_loop().time
        async with aclosing(self._frames) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
                self._sent_at = clock()
        await send({"type": "http.response.body", "body": b"", "more_body": False})
