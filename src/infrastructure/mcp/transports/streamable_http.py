"""Streamable HTTP, both generations on one URL (MCP 2025-03-26 to 2026-07-28, basic/transports).
Above: the SDK's dispatcher. Each POST runs in the task that waits for its reply; the only other
task listens to a legacy server's own messages."""

import asyncio
import contextlib
import json
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import aiohttp
import msgspec
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, ServerMessageMetadata, SessionMessage
from mcp.types import (
    CONNECTION_CLOSED,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from application.system.event_stream import OversizedEvent
from infrastructure.mcp.faults import (
    FLOODED,
    FOREIGN,
    NOT_JSON_RPC,
    SESSION_GONE,
    TOO_MANY_VALUES,
    UNANSWERED,
    TransportFailedError,
    content_type_fault,
    fault_reply,
)
from infrastructure.mcp.pace import MESSAGE, REQUEST, Pace
from infrastructure.mcp.transports.list_pages import page_of
from infrastructure.mcp.transports.message_sink import MessageSink
from infrastructure.mcp.transports.remote import Endpoint, content_type_of, status_fault
from infrastructure.mcp.transports.stdio_framing import (
    MAX_UNASKED_BYTES,
    read_counted,
    read_line,
    read_oversized,
    values_in,
)
from infrastructure.mcp.transports.stdio_pipes import MessageReader
from infrastructure.mcp.transports.value_count import MAX_VALUES, id_of_excessive

_SESSION_HEADER = "mcp-session-id"
_OK = 200
_BAD_REQUEST = 400
_NOT_FOUND = 404
_ACCEPTED = (202, 204)
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
_ACCEPT_EVENTS = {"accept": "text/event-stream", "cache-control": "no-store"}
_MAX_RESUMPTIONS = 3
_DEFAULT_RETRY_MS = 1000
_MAX_RETRY_MS = 10_000
_COURTESY_TIMEOUT_S = 2.0
_NOTIFICATION_TIMEOUT_S = 5.0


class StreamableHttpTransport:
    """A logical connection: entering opens nothing. Leaving ends a legacy server's session, within
    2 s."""

    disconnect_cancels = True
    """In the modern generation, aborting the POST cancels the call."""

    def __init__(self, endpoint: Endpoint, pace: Pace | None = None) -> None:
        self._endpoint = endpoint
        self._session_id: str | None = None
        self._version: str | None = None
        self._listener: asyncio.Task[None] | None = None
        self._reader = MessageReader(max_bytes=endpoint.max_response_bytes, pace=pace, request_cost=REQUEST)

    async def __aenter__(self) -> tuple[MessageReader, MessageSink]:
        return self._reader, MessageSink(self._send, self._ask)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._reader.close()
        self._endpoint.abort_requests()
        if self._listener is not None:
            self._listener.cancel()
            await asyncio.wait([self._listener])
        if self._session_id is not None:
            with contextlib.suppress(TransportFailedError, TimeoutError):
                async with (
                    asyncio.timeout(_COURTESY_TIMEOUT_S),
                    self._endpoint.request("DELETE", self._own_headers()),
                ):
                    pass

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
        """Post a message. A request returns once its reply, or a failure as its reply, is passed to
        the reader."""
        message = item.message
        stamped = item.metadata.headers if isinstance(item.metadata, ClientMessageMetadata) else None
        if isinstance(message, JSONRPCRequest) and message.method == "initialize":
            self._version = None
        elif stamped and MCP_PROTOCOL_VERSION_HEADER in stamped:
            self._version = stamped[MCP_PROTOCOL_VERSION_HEADER]
        headers = _ACCEPT | self._own_headers() | (stamped or {})
        body = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        if isinstance(message, JSONRPCRequest):
            try:
                await self._post(message, headers, body)
            except TransportFailedError as exc:
                self._reader.put(fault_reply(message.id, exc.fault))
        else:
            await self._notify(message, headers, body)

    async def _ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Fast path of `MessageSink.ask` for JSON replies, the most frequent ones."""
        self._version = headers.get(MCP_PROTOCOL_VERSION_HEADER, self._version)
        sent = _ACCEPT | self._own_headers() | dict(headers)
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        await self._reader.pace.wait()
        try:
            async with self._endpoint.request("POST", sent, body) as response:
                text: bytes | None = None
                if content_type_of(response) == "application/json" and response.status == _OK:
                    text = await self._endpoint.read_body(response)
                    if self._reader.is_list(request_id) and (page := page_of(text)) and page[0] == request_id:
                        self._reader.pace.charge_reply(len(text))
                        return page[1]
                    values = values_in(text)
                    is_refused = values > MAX_VALUES and id_of_excessive(text) is not None
                    self._reader.pace.charge_reply(len(text), values, is_refused=is_refused)
                    if is_refused:
                        raise TransportFailedError(TOO_MANY_VALUES)
                    if (result := _plain_result(request_id, text)) is not None:
                        return result
                message = JSONRPCRequest.model_construct(jsonrpc="2.0", id=request_id, method=method, params=params)
                await self._read_answer(message, response, sent, text)
        except TransportFailedError as exc:
            self._reader.put(fault_reply(request_id, exc.fault))
        return None

    def _own_headers(self) -> dict[str, str]:
        headers = {}
        if self._session_id is not None:
            headers[_SESSION_HEADER] = self._session_id
        if self._version is not None:
            headers[MCP_PROTOCOL_VERSION_HEADER] = self._version
        return headers

    async def _notify(
        self, message: JSONRPCNotification | JSONRPCResponse | JSONRPCError, headers: Mapping[str, str], body: bytes
    ) -> None:
        if self._version in MODERN_PROTOCOL_VERSIONS:
            return  # the modern protocol has only requests in this direction
        with contextlib.suppress(TransportFailedError, TimeoutError):
            async with asyncio.timeout(_NOTIFICATION_TIMEOUT_S), self._endpoint.request("POST", headers, body):
                pass
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/initialized":
            self._listener = asyncio.create_task(self._listen(), name="mcp-http-listener")

    async def _post(self, message: JSONRPCRequest, headers: Mapping[str, str], body: bytes) -> None:
        async with self._endpoint.request("POST", headers, body) as response:
            await self._read_answer(message, response, headers)

    async def _read_answer(
        self,
        message: JSONRPCRequest,
        response: aiohttp.ClientResponse,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> None:
        """Pass on the reply to a POST, with `body` if it was read; a broken stream is resumed."""
        if response.status == _NOT_FOUND and _SESSION_HEADER in headers:
            raise TransportFailedError(SESSION_GONE)
        if message.method == "initialize":
            self._session_id = response.headers.get(_SESSION_HEADER)
        content_type = content_type_of(response)
        if content_type == "application/json":
            await self._read_json(message.id, response, headers, body)
            return
        if (fault := status_fault(response)) is not None:
            raise TransportFailedError(fault)
        if response.status in _ACCEPTED:
            raise TransportFailedError(UNANSWERED)
        if content_type != "text/event-stream":
            raise TransportFailedError(content_type_fault(content_type))
        last_id, retry_ms, answered = await self._read_events(message.id, response)
        response.close()
        for _ in range(_MAX_RESUMPTIONS):
            if answered or not last_id:
                break
            last_id, retry_ms, answered = await self._resume(message.id, last_id, retry_ms)
        if not answered:
            raise TransportFailedError(UNANSWERED)

    async def _read_json(
        self, request_id: RequestId, response: aiohttp.ClientResponse, headers: Mapping[str, str], body: bytes | None
    ) -> None:
        failed = status_fault(response)
        if failed is not None and failed.needs_auth:
            raise TransportFailedError(failed)
        if body is None:
            body = await self._endpoint.read_body(response)
        reply = _reply_in(read_line(body, values=values_in(body))) or _error_without_id(body, request_id)
        if reply is None or (failed is not None and isinstance(reply, JSONRPCResponse)):
            raise TransportFailedError(failed or NOT_JSON_RPC)
        if response.status == _BAD_REQUEST and _SESSION_HEADER in headers and _is_unspecific(reply):
            raise TransportFailedError(SESSION_GONE)
        if not _is_to(request_id, reply):
            raise TransportFailedError(FOREIGN)
        reply.id = request_id
        self._reader.put(SessionMessage(reply))

    async def _read_events(
        self, request_id: RequestId, response: aiohttp.ClientResponse
    ) -> tuple[str, int | None, bool]:
        """Pass on the events; returns the last event id, the requested delay, and whether the
        request was answered."""
        last_id, retry_ms = "", None
        try:
            async for event in self._endpoint.read_events(response, self._reader.pace):
                if isinstance(event, OversizedEvent):
                    oversized = read_oversized(event, self._endpoint.max_response_bytes)
                    if isinstance(oversized, SessionMessage):
                        self._reader.put(oversized)
                        return last_id, retry_ms, True
                    continue
                last_id = event.id or last_id
                retry_ms = event.retry_ms if event.retry_ms is not None else retry_ms
                if self._hand_on(request_id, event.data):
                    return last_id, retry_ms, True
                await self._reader.room()
        except aiohttp.ClientError:
            if not last_id:
                raise
        return last_id, retry_ms, False

    def _hand_on(self, request_id: RequestId | None, data: bytes) -> bool:
        """Pass on the messages of an event with their request; returns whether its reply was among
        them."""
        answered = False
        items, values = read_counted(data, None, self._reader.is_list)
        for item in items:
            size = len(data) // len(items)
            reply = _reply_in([item])
            if reply is not None and request_id is not None:
                if not _is_to(request_id, reply):
                    self._reader.pace.spend(MESSAGE, size)
                    continue  # as on stdio, where no call waits for it
                reply.id = request_id
                answered = True
            elif (
                request_id is not None
                and isinstance(item, SessionMessage)
                and isinstance(item.message, JSONRPCNotification)
            ):
                item.metadata = ServerMessageMetadata(related_request_id=request_id)
            self._reader.put(item, size, values)
        return answered

    async def _resume(self, request_id: RequestId, last_id: str, retry_ms: int | None) -> tuple[str, int | None, bool]:
        """Resume a broken stream (2025-03-26 to 2025-11-25)."""
        await asyncio.sleep(_retry_s(retry_ms))
        headers = _ACCEPT_EVENTS | self._own_headers() | {"last-event-id": last_id}
        async with self._endpoint.request("GET", headers) as response:
            if response.status == _NOT_FOUND or content_type_of(response) != "text/event-stream":
                raise TransportFailedError(UNANSWERED)
            return await self._read_events(request_id, response)

    async def _listen(self) -> None:
        """Read a legacy server's own messages, as long as it keeps that stream open."""
        last_id, retry_ms, failures = "", None, 0
        while failures < _MAX_RESUMPTIONS:
            headers = _ACCEPT_EVENTS | self._own_headers() | ({"last-event-id": last_id} if last_id else {})
            try:
                async with self._endpoint.request("GET", headers) as response:
                    if status_fault(response) or content_type_of(response) != "text/event-stream":
                        return
                    events = self._endpoint.read_events(response, self._reader.pace, max_bytes=MAX_UNASKED_BYTES)
                    async for event in events:
                        failures = 0
                        if isinstance(event, OversizedEvent):
                            continue
                        last_id = event.id or last_id
                        retry_ms = event.retry_ms if event.retry_ms is not None else retry_ms
                        self._hand_on(None, event.data)
                        await self._reader.room()
            except TransportFailedError as exc:
                if exc.fault is FLOODED:
                    return
            failures += 1
            await asyncio.sleep(_retry_s(retry_ms))


def _plain_result(request_id: str, body: bytes) -> dict[str, Any] | None:
    """The result in a body with nothing else; None for others, which need full parsing."""
    try:
        reply = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None
    if not isinstance(reply, dict) or reply.get("jsonrpc") != "2.0" or "error" in reply:
        return None
    if reply.get("id") != request_id:
        return None
    result = reply.get("result")
    return result if isinstance(result, dict) else None


def _reply_in(items: Iterable[SessionMessage | Exception]) -> JSONRPCResponse | JSONRPCError | None:
    for item in items:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            return item.message
    return None


def _is_to(request_id: RequestId, reply: JSONRPCResponse | JSONRPCError) -> bool:
    """Whether a reply has the request's id, as a number or a text; an error may have none."""
    if reply.id is None:
        return isinstance(reply, JSONRPCError)
    return str(reply.id) == str(request_id)


def _error_without_id(body: bytes, request_id: RequestId) -> JSONRPCError | None:
    """The error of a server that failed before it knew the id of the request."""
    try:
        error = ErrorData.model_validate(json.loads(body)["error"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=error)


def _is_unspecific(reply: JSONRPCResponse | JSONRPCError) -> bool:
    """Servers based on old TypeScript examples report a lost session in this way, instead of by
    404."""
    return isinstance(reply, JSONRPCError) and reply.error.code == CONNECTION_CLOSED


def _retry_s(retry_ms: int | None) -> float:
    return min(_DEFAULT_RETRY_MS if retry_ms is None else retry_ms, _MAX_RETRY_MS) / 1000
