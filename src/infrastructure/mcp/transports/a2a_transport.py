"""A remote A2A agent as an MCP server with one tool. Above: the SDK's dispatcher, as over any
transport, so policies, pinned definitions, the ledger and the audit trail hold alike."""

import asyncio
import contextlib
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from infrastructure.mcp.faults import NOT_JSON_RPC, TransportFailedError, fault_reply
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.a2a_agent import A2aAgent, A2aRefused, IsTrusted, Json
from infrastructure.mcp.transports.a2a_calls import A2aCalls, task_in
from infrastructure.mcp.transports.a2a_results import TOOL, tool_of
from infrastructure.mcp.transports.message_sink import MessageSink
from infrastructure.mcp.transports.remote import Endpoint
from infrastructure.mcp.transports.stdio_pipes import MessageReader

_VERSION = "2025-11-25"
_CANCEL_S = 2.0


class A2aTransport:
    """A logical connection: entering opens nothing.

    - The calls are those of `A2aCalls`.
    - A call that is cancelled by a notification cancels its task; one that only ends does not, for
      another process continues it.
    """

    disconnect_cancels = False

    def __init__(
        self, endpoint: Endpoint, url: str, pace: Pace | None = None, is_trusted: IsTrusted | None = None
    ) -> None:
        self._endpoint = endpoint
        self._agent = A2aAgent(endpoint, url, is_trusted)
        self._reader = MessageReader(max_bytes=endpoint.max_response_bytes, pace=pace)
        self._calls = A2aCalls(self._agent, self._reader.pace, lambda: self._is_over)
        self._begun: dict[object, asyncio.Task[Json]] = {}
        self._cancelling: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def __aenter__(self) -> tuple[MessageReader, MessageSink]:
        return self._reader, MessageSink(self._send)

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over = True
        self._reader.close()
        if self._cancelling:
            await asyncio.wait(self._cancelling)
        for begun in self._begun.values():
            begun.cancel()
        self._endpoint.abort_requests()

    def describe_end(self) -> str | None:
        """Unknown for a remote agent."""
        return None

    def describe_noise(self) -> str | None:
        """Unknown for a remote agent."""
        return None

    def stderr(self) -> str:
        """Unavailable for a remote agent."""
        return ""

    async def _send(self, item: SessionMessage) -> None:
        """Answer a request. Of notifications that of a cancelled call has an effect."""
        request = item.message
        if isinstance(request, JSONRPCNotification) and request.method == "notifications/cancelled":
            self._cancel((request.params or {}).get("requestId"))
        if not isinstance(request, JSONRPCRequest):
            return
        try:
            reply = await self._answered(request)
        except TransportFailedError as exc:
            self._reader.put(fault_reply(request.id, exc.fault))
            return
        except RecursionError:
            self._reader.put(fault_reply(request.id, NOT_JSON_RPC))
            return
        except A2aRefused as exc:
            error = ErrorData(code=INVALID_PARAMS, message=str(exc))
            reply = JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        self._reader.put(SessionMessage(reply))

    async def _answered(self, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        params: dict[str, Any] = request.params or {}
        match request.method:
            case "initialize":
                result = await self._initialized()
            case "tools/list":
                result = {"tools": [tool_of(await self._agent.card())]}
            case "tools/call" if params.get("name") == TOOL:
                result = await self._called(request.id, params)
            case "ping":
                result = {}
            case _:
                error = ErrorData(code=METHOD_NOT_FOUND, message="An A2A agent has tools only.")
                return JSONRPCError(jsonrpc="2.0", id=request.id, error=error)
        return JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)

    async def _initialized(self) -> dict[str, Any]:
        card = await self._agent.card()
        server = {"name": str(card.get("name", "")), "version": str(card.get("version", ""))}
        return {"protocolVersion": _VERSION, "capabilities": {"tools": {}}, "serverInfo": server}

    async def _called(self, request_id: RequestId, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a call. Where it is cancelled, its task can be, also one that the agent is
        only about to name."""
        begun = self._begun[request_id] = self._calls.begin(params)
        try:
            task = await asyncio.shield(begun)
            result = await self._calls.result(
                params, task, lambda text: self._progress(params.get("_meta") or {}, text)
            )
        except asyncio.CancelledError:  # whether the task is cancelled is said by a notification that follows
            raise
        except A2aRefused as exc:
            result = {"content": [{"type": "text", "text": str(exc)}], "isError": True}
        except BaseException:
            self._begun.pop(request_id, None)
            raise
        self._begun.pop(request_id, None)
        return result

    def _cancel(self, request_id: object) -> None:
        begun = self._begun.pop(request_id, None)
        if begun is not None:
            cancelling = asyncio.create_task(self._cancelled(begun))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)

    async def _cancelled(self, begun: "asyncio.Task[Json]") -> None:
        try:
            with contextlib.suppress(TransportFailedError, A2aRefused, TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    answer = await begun
                    await self._agent.call("CancelTask", {"id": task_in(answer.get("task"))["id"]})
        finally:
            begun.cancel()

    def _progress(self, meta: dict[str, Any], text: str) -> None:
        token = meta.get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": 0, "message": text}
            note = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
            self._reader.put(SessionMessage(note))
