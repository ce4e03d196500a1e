"""Requests and replies on one connection, beside the SDK's dispatcher. The dispatcher costs a
stream, a span and several wake-ups per request, a future one. The dispatcher handles everything
else: negotiation, the server's requests, subscriptions."""

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCResponse

from application.mcp.log_messages import LogTap
from application.mcp.ports import McpProgress, ProgressCallback
from infrastructure.mcp.faults import closed_error
from infrastructure.mcp.log_relay import LogRelay
from infrastructure.mcp.relay import Relay
from infrastructure.mcp.text import capped, clean

MAX_MESSAGE_CHARACTERS = 16 * 1024
"""Limit of one progress message."""
_LISTENER_GRACE_S = 1.0
_PROGRESS = "notifications/progress"
_MESSAGE = "notifications/message"
_LIST = "tools/list"


class Sink(Protocol):
    async def ask(
        self, request_id: str, method: str, params: dict[str, Any], headers: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Send a request; returns the result if it is available, None if it arrives at the reader.
        Raises anyio.BrokenResourceError or ClosedResourceError when the connection has ended."""
        ...


class _Progress:
    """The progress listener of a request. Most requests report none, so the relay is created for
    the first message."""

    __slots__ = ("_tell", "relay")

    def __init__(self, tell: ProgressCallback) -> None:
        self._tell = tell
        self.relay: Relay[McpProgress] | None = None

    def put(self, news: McpProgress) -> None:
        if self.relay is None:
            self.relay = Relay(self._tell)
        self.relay.put(news)


class Exchanges:
    """Requests in progress. `take` must see every message first. `is_private`: all requests are of
    one user."""

    def __init__(self, sink: Sink, *, is_private: bool = False) -> None:
        self._sink = sink
        self._is_private = is_private
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[str, _Progress] = {}
        self._logs: dict[str, LogRelay] = {}
        self._lists: set[str] = set()
        self._is_closed = False

    def new_id(self) -> str:
        """An id that differs from all of the dispatcher's."""
        return f"call-{next(self._ids)}"

    async def request(
        self,
        request_id: str,
        method: str,
        params: dict[str, Any],
        *,
        headers: dict[str, str],
        on_progress: ProgressCallback | None = None,
        logs: LogTap | None = None,
    ) -> dict[str, Any]:
        """Send a request; returns the raw result (of a large list of tools, entries may be
        `msgspec.Raw`), after progress and log messages were delivered (at most a second later).
        Raises MCPError. The caller bounds the time, and notifies the server of a cancellation."""
        if self._is_closed:
            raise closed_error()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        if method == _LIST:
            self._lists.add(request_id)
        progress = messages = None
        if on_progress is not None:
            progress = self._progress[request_id] = _Progress(on_progress)
            params["_meta"] = {**params.get("_meta", {}), "progressToken": request_id}
        if logs is not None:
            messages = self._logs[request_id] = LogRelay(logs)
        try:
            try:
                result = await self._sink.ask(request_id, method, params, headers)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise closed_error() from None
            if result is None:
                result = await answer
            if progress is not None and progress.relay is not None:
                await progress.relay.finish(_LISTENER_GRACE_S)
            if messages is not None:
                await messages.finish(_LISTENER_GRACE_S)
            return result
        finally:
            if answer.done() and not answer.cancelled():
                answer.exception()  # retrieved, so that asyncio does not log it as never retrieved
            self._forget(request_id)

    def _forget(self, request_id: str) -> None:
        del self._waiting[request_id]
        self._lists.discard(request_id)
        progress = self._progress.pop(request_id, None)
        if progress is not None and progress.relay is not None:
            progress.relay.stop()
        messages = self._logs.pop(request_id, None)
        if messages is not None:
            messages.stop()

    def take(self, item: SessionMessage | Exception) -> bool:
        """Whether the message belonged to one of these requests, and was handled."""
        if isinstance(item, Exception):
            return False
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            return self._settle(message)
        if isinstance(message, JSONRPCNotification) and message.method == _PROGRESS and self._progress:
            return self._relay(message.params or {})
        if isinstance(message, JSONRPCNotification) and message.method == _MESSAGE:
            self._log(item, message.params or {})
            return True
        return False

    def is_list(self, call_id: int | str) -> bool:
        """Whether the request asked for a list of tools."""
        return call_id in self._lists

    def settle(self, call_id: int | str, result: dict[str, Any]) -> bool:
        """Whether the result belonged to one of these requests, and was delivered."""
        answer = self._waiting.get(call_id) if isinstance(call_id, str) else None
        if answer is None:
            return False
        if not answer.done():
            answer.set_result(result)
        return True

    def close(self) -> None:
        """Fail all requests: the connection has ended."""
        self._is_closed = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(closed_error())

    def _settle(self, reply: JSONRPCResponse | JSONRPCError) -> bool:
        if isinstance(reply, JSONRPCResponse):
            return self.settle(reply.id, reply.result)
        answer = self._waiting.get(reply.id) if isinstance(reply.id, str) else None
        if answer is None:
            return False
        if not answer.done():
            answer.set_exception(_error(reply.error))
        return True

    def _log(self, item: SessionMessage, params: Mapping[str, Any]) -> None:
        """Deliver to the request of the message; on a connection with a single channel, to the only
        request, if no other user's work can have caused it."""
        if not self._logs:
            return
        related = item.metadata.related_request_id if isinstance(item.metadata, ServerMessageMetadata) else None
        if related is None and self._is_private and len(self._waiting) == 1:
            [related] = self._waiting
        relay = self._logs.get(related) if isinstance(related, str) else None
        if relay is not None:
            relay.put(params)

    def _relay(self, params: Mapping[str, Any]) -> bool:
        token = params.get("progressToken")
        listener = self._progress.get(token) if isinstance(token, str) else None
        if listener is None:
            return False
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(progress, int | float):
            listener.put(
                McpProgress(
                    progress=float(progress),
                    total=float(total) if isinstance(total, int | float) else None,
                    message=capped(clean(message), MAX_MESSAGE_CHARACTERS) if isinstance(message, str) else None,
                )
            )
        return True


def _error(error: ErrorData) -> MCPError:
    return MCPError(code=error.code, message=error.message, data=error.data)
