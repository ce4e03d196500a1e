"""HTTP with a long-lived event stream, the transport before streamable HTTP (MCP 2024-11-05,
basic/transports). Each request is posted by the task that waits for its reply; one task reads the
replies from the stream."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from application.system.event_stream import OversizedEvent, StreamEvent
from infrastructure.mcp.faults import (
    BROKEN,
    UNANSWERED,
    TransportFailedError,
    TransportFault,
    content_type_fault,
    fault_reply,
)
from infrastructure.mcp.pace import REQUEST, Pace
from infrastructure.mcp.transports.message_sink import MessageSink
from infrastructure.mcp.transports.remote import Endpoint, content_type_of, status_fault
from infrastructure.mcp.transports.stdio_framing import read_counted, read_oversized
from infrastructure.mcp.transports.stdio_pipes import MessageReader

_ACCEPT_EVENTS = {"accept": "text/event-stream", "cache-control": "no-store"}
_NOTIFICATION_TIMEOUT_S = 5.0
_POST = {"content-type": "application/json"}


class LegacySseTransport:
    """Entering opens the stream, and waits until the server has sent the address to post to."""

    disconnect_cancels = False

    def __init__(self, endpoint: Endpoint, pace: Pace | None = None) -> None:
        self._endpoint = endpoint
        self._post_to: asyncio.Future[Endpoint] | None = None
        self._stream: asyncio.Task[None] | None = None
        self._reader = MessageReader(max_bytes=endpoint.max_response_bytes, pace=pace, request_cost=REQUEST)

    async def __aenter__(self) -> tuple[MessageReader, MessageSink]:
        self._post_to = asyncio.get_running_loop().create_future()
        self._stream = asyncio.create_task(self._read(self._post_to), name="mcp-sse-stream")
        try:
            await self._post_to
        except BaseException:
            await self._end_stream()
            raise
        return self._reader, MessageSink(self._send)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reader.close()
        self._endpoint.abort_requests()
        await self._end_stream()

    def describe_end(self) -> str | None:
        """Unknown for a remote server."""
        return None

    def describe_noise(self) -> str | None:
        """Unknown: invalid MCP fails its own exchange."""
        return None

    def stderr(self) -> str:
        """Unavailable for a remote server."""
        return ""

    async def _send(self, item: SessionMessage) -> None:
        """Post a message; a failure becomes the reply of a request. Other messages wait for the
        server only briefly: callers bound the time of requests."""
        assert self._post_to is not None
        message = item.message
        body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        timeout_s = None if isinstance(message, JSONRPCRequest) else _NOTIFICATION_TIMEOUT_S
        fault: TransportFault | None = None
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._post_to.result().request("POST", _POST, body) as response,
            ):
                fault = status_fault(response)
        except TransportFailedError as exc:
            fault = exc.fault
        except TimeoutError:
            return
        if fault is not None and isinstance(message, JSONRPCRequest):
            self._reader.put(fault_reply(message.id, fault))

    async def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
            await asyncio.wait([self._stream])

    async def _read(self, post_to: asyncio.Future[Endpoint]) -> None:
        try:
            async with self._endpoint.request("GET", _ACCEPT_EVENTS) as response:
                if (fault := status_fault(response)) is not None:
                    raise TransportFailedError(fault)
                content_type = content_type_of(response)
                if content_type != "text/event-stream":
                    raise TransportFailedError(content_type_fault(content_type))
                await self._hand_on(self._endpoint.read_events(response, self._reader.pace), post_to)
            raise TransportFailedError(UNANSWERED if not post_to.done() else BROKEN)
        except TransportFailedError as exc:
            if not post_to.done():
                post_to.set_exception(exc)
        finally:
            self._reader.end()

    async def _hand_on(
        self, events: AsyncIterator[StreamEvent | OversizedEvent], post_to: asyncio.Future[Endpoint]
    ) -> None:
        async for event in events:
            if isinstance(event, OversizedEvent):
                self._reader.put(read_oversized(event, self._endpoint.max_response_bytes))
            elif event.type == "endpoint":
                if not post_to.done():
                    post_to.set_result(self._endpoint.at(event.data.decode(errors="replace")))
            elif event.data:
                self._take(event.data)
            await self._reader.room()

    def _take(self, data: bytes) -> None:
        items, values = read_counted(data, self._reader.settled, self._reader.is_list)
        if not items:  # a result
            self._reader.pace.charge_reply(len(data), values)
        for item in items:
            self._reader.put(item, len(data) // len(items), values)
