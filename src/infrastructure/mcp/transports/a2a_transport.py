"""A remote A2A agent as an MCP server with one tool. Above: the SDK's dispatcher, as over any transport, so policies,
pinned definitions, the ledger and the audit trail hold alike."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
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
)

from application.mcp.ports import McpFailureKind
from application.tools.call_context import IDEMPOTENCY_META
from infrastructure.mcp.faults import NOT_JSON_RPC, TransportFailedError, fault_reply
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.a2a_agent import A2aAgent, A2aRefused, Json
from infrastructure.mcp.transports.a2a_results import (
    TERMINAL,
    TOOL,
    WAITING,
    fault_after_message,
    message_of,
    result_of_message,
    result_of_task,
    state_of,
    tool_of,
)
from infrastructure.mcp.transports.message_sink import MessageSink
from infrastructure.mcp.transports.remote import Endpoint
from infrastructure.mcp.transports.stdio_pipes import MessageReader

_VERSION = "2025-11-25"
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_CANCEL_S = 2.0
_MAX_FAULTS = 10
_PASSING = frozenset({McpFailureKind.NOT_CONNECTED, McpFailureKind.CONNECTION_LOST, McpFailureKind.BUSY})


class A2aTransport:
    """A logical connection: entering opens nothing.

    - A call sends one message and reads its task until it waits or has ended. What a task asks is the result: the model
      answers by another call.
    - Once a message was answered, it is never sent again: a fault of reading its task tells the task's id. A passing
      fault is read over, up to 10 times in a row.
    - A cancelled call cancels its task.
    """

    disconnect_cancels = True
    """A cancelled call cancels its task."""

    def __init__(self, endpoint: Endpoint, url: str, pace: Pace | None = None) -> None:
        self._endpoint = endpoint
        self._agent = A2aAgent(endpoint, url)
        self._reader = MessageReader(max_bytes=endpoint.max_response_bytes, pace=pace)
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
        """Answer a request; notifications have no effect."""
        request = item.message
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
                result = await self._called(params)
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

    async def _called(self, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a call. Where it is cancelled, so is its task, also one that the agent is only about to name."""
        meta = params.get("_meta") or {}
        message_id = str(meta.get(IDEMPOTENCY_META) or uuid.uuid4().hex)
        message = message_of(params.get("arguments") or {}, message_id)
        sending = asyncio.create_task(self._agent.call("SendMessage", message))
        try:
            answer = await asyncio.shield(sending)
            if isinstance(answer.get("message"), dict):
                return result_of_message(answer["message"])
            return result_of_task(await self._rested(answer.get("task"), lambda text: self._progress(meta, text)))
        except A2aRefused as exc:
            return {"content": [{"type": "text", "text": str(exc)}], "isError": True}
        except asyncio.CancelledError:  # another task tells the agent: this one must not wait
            cancelling = asyncio.create_task(self._cancelled(sending))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)
            raise

    async def _rested(self, given: object, told: Callable[[str], None]) -> Json:
        """The task once it waits or has ended. Raises A2aRefused, TransportFailedError."""
        task, state, pause_s, faults = _task(given), "", _FIRST_PAUSE_S, 0
        while True:
            if state_of(task) != state:
                state = state_of(task)
                told(f"task {task['id']}: {state}")
            if state in TERMINAL or state in WAITING:
                return task
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_PAUSE_S)
            try:
                task = _task(await self._agent.call("GetTask", {"id": task["id"], "historyLength": 0}))
                faults = 0
            except TransportFailedError as exc:
                faults += 1
                if self._is_over or exc.fault.kind not in _PASSING or faults > _MAX_FAULTS:
                    raise TransportFailedError(fault_after_message(exc.fault, task)) from exc

    async def _cancelled(self, sending: "asyncio.Task[Json]") -> None:
        try:
            with contextlib.suppress(TransportFailedError, A2aRefused, TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    answer = await sending
                    await self._agent.call("CancelTask", {"id": _task(answer.get("task"))["id"]})
        finally:
            sending.cancel()

    def _progress(self, meta: dict[str, Any], text: str) -> None:
        token = meta.get("progressToken")
        if token is not None:
            params = {"progressToken": token, "progress": 0, "message": text}
            note = JSONRPCNotification(jsonrpc="2.0", method="notifications/progress", params=params)
            self._reader.put(SessionMessage(note))


def _task(given: object) -> Json:
    """Raises A2aRefused for what is no task."""
    if isinstance(given, dict) and isinstance(given.get("id"), str) and given["id"]:
        return given
    raise A2aRefused("The agent answered without a task.")
