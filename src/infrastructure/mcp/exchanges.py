"""Requests and their answers on one connection, beside the SDK's dispatcher: what is ours is taken before it gets there.

The dispatcher costs a stream, a span and several wake-ups per request; a future costs one. It keeps everything else:
the negotiation, the server's own requests, subscriptions.
"""

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import Mapping
from typing import Any, Protocol

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from application.mcp.ports import McpProgress, ProgressCallback
from infrastructure.mcp.faults import closed_error
from infrastructure.mcp.text import clean

logger = logging.getLogger(__name__)

_LISTENER_GRACE_S = 1.0
_PROGRESS = "notifications/progress"


class Sink(Protocol):
    """Where messages are written."""

    async def send(self, item: SessionMessage, /) -> None:
        """Sends one message. Raises anyio.BrokenResourceError or ClosedResourceError when the connection has ended."""
        ...


class Exchanges:
    """Requests in flight. `take` is to see every message that arrives, before anyone else."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[str, ProgressRelay] = {}
        self._is_closed = False

    def new_id(self) -> str:
        """An id that none of the dispatcher's can equal."""
        return f"call-{next(self._ids)}"

    async def request(
        self,
        request_id: str,
        method: str,
        params: dict[str, Any],
        *,
        headers: dict[str, str],
        on_progress: ProgressCallback | None = None,
    ) -> dict[str, Any]:
        """The raw result of one request; whoever listens to its progress has heard it all, unless that takes over a
        second. Raises MCPError. The caller bounds the time, and tells the server when it gives up."""
        if self._is_closed:
            raise closed_error()
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = answer
        relay = None
        if on_progress is not None:
            relay = self._progress[request_id] = ProgressRelay(on_progress)
            params["_meta"] = {**params.get("_meta", {}), "progressToken": request_id}
        request = JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, params=params)
        try:
            try:
                await self._sink.send(SessionMessage(request, ClientMessageMetadata(headers=headers)))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                raise closed_error() from None
            result = await answer
            if relay is not None:
                await relay.finish(_LISTENER_GRACE_S)
            return result
        finally:
            if not answer.cancel() and not answer.cancelled():
                answer.exception()  # seen, as far as asyncio's complaint about unseen ones goes
            del self._waiting[request_id]
            if relay is not None:
                del self._progress[request_id]
                relay.stop()

    def take(self, item: SessionMessage | Exception) -> bool:
        """Whether a message that arrived was for a request of ours, and has been dealt with."""
        if isinstance(item, Exception):
            return False
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            return self._settle(message)
        if isinstance(message, JSONRPCNotification) and message.method == _PROGRESS and self._progress:
            return self._relay(message.params or {})
        return False

    def close(self) -> None:
        """The connection has ended: nobody is answered any more."""
        self._is_closed = True
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(closed_error())

    def _settle(self, reply: JSONRPCResponse | JSONRPCError) -> bool:
        answer = self._waiting.get(reply.id) if isinstance(reply.id, str) else None
        if answer is None:
            return False
        if answer.done():
            return True
        if isinstance(reply, JSONRPCResponse):
            answer.set_result(reply.result)
        else:
            answer.set_exception(_error(reply.error))
        return True

    def _relay(self, params: Mapping[str, Any]) -> bool:
        token = params.get("progressToken")
        relay = self._progress.get(token) if isinstance(token, str) else None
        if relay is None:
            return False
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(progress, int | float):
            relay.put(
                McpProgress(
                    progress=float(progress),
                    total=float(total) if isinstance(total, int | float) else None,
                    message=clean(message) if isinstance(message, str) else None,
                )
            )
        return True


class ProgressRelay:
    """Hands progress on, one notification at a time and in order; what the listener raises is logged."""

    def __init__(self, on_progress: ProgressCallback) -> None:
        self._on_progress = on_progress
        self._queue: deque[McpProgress] = deque()
        self._task: asyncio.Task[None] | None = None

    def put(self, progress: McpProgress) -> None:
        """One notification."""
        self._queue.append(progress)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._deliver(), name="mcp-progress")

    async def finish(self, grace_s: float) -> None:
        """Waits until all of it is delivered, as long as allowed."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task], timeout=grace_s)

    def stop(self) -> None:
        """The request is over: the rest is dropped."""
        self._queue.clear()
        if self._task is not None:
            self._task.cancel()

    async def _deliver(self) -> None:
        while self._queue:
            try:
                await self._on_progress(self._queue.popleft())
            except Exception:
                logger.exception("a listener to progress failed")


def _error(error: ErrorData) -> MCPError:
    return MCPError(code=error.code, message=error.message, data=error.data)
