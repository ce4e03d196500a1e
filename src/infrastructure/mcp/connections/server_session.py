"""Requests on an open connection: tool calls and listings, with deadlines and cancellation. They
bypass the SDK's session, which validates every result. Below: `exchanges.py`; `content.py` and
`catalog.py` parse replies."""

import asyncio
import contextlib
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

import anyio.abc
from mcp import ClientSession
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    LOG_LEVEL_META_KEY,
    METHOD_NOT_FOUND,
    PROTOCOL_VERSION_META_KEY,
    Implementation,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from application.mcp.contents import ContentMethod, ContentRequest
from application.mcp.ports import (
    ContentBlock,
    ContentKind,
    McpCall,
    McpFailure,
    McpFailureKind,
    McpInputRequired,
    McpReply,
    ProgressCallback,
)
from application.system.deadline import Deadline
from domain.mcp.catalog import McpToolDefinition
from domain.mcp.log_level import LogLevel
from infrastructure.mcp.catalogs.catalog import HeaderMap, ToolListing
from infrastructure.mcp.catalogs.tool_lists import ToolLists
from infrastructure.mcp.connections.asked_calls import AskedCall, AskedCalls
from infrastructure.mcp.connections.content import read_reply
from infrastructure.mcp.connections.negotiation import CAPABILITIES
from infrastructure.mcp.connections.server_facts import ServerFacts
from infrastructure.mcp.faults import BROKEN, SILENT, TransportFault, call_failure, fault_in, is_closed
from infrastructure.mcp.pace import PAGE, TOOL
from infrastructure.mcp.transports.exchanges import Exchanges
from infrastructure.mcp.transports.message_sink import AnswerWriter, MessageSink
from infrastructure.mcp.transports.server_transports import ServerTransport
from infrastructure.mcp.transports.stdio_pipes import MessageReader, MessageWriter

_CANCEL_TIMEOUT_S = 5.0
MAX_SERVER_REQUESTS = 16
"""Concurrent requests of a server to the client, per connection."""
_ELICITATION: Mapping[str, Any] = {**CAPABILITIES, "elicitation": {"form": {}, "url": {}}}

_header_value = lru_cache(maxsize=1_000)(encode_header_value)
_NAMED_BY = {ContentMethod.READ_RESOURCE: "uri", ContentMethod.GET_PROMPT: "name"}


class ObservedDispatcher(JSONRPCDispatcher):
    """The SDK's dispatcher with an `ended` event, and our `exchanges` on the same streams.
    `is_private`: the connection has one user. Of the server's requests, those beyond
    `MAX_SERVER_REQUESTS` wait unread."""

    def __init__(self, reader: MessageReader, writer: MessageSink | MessageWriter, *, is_private: bool = False) -> None:
        super().__init__(reader, AnswerWriter(writer, reader.answered))
        reader.requests_at_a_time = MAX_SERVER_REQUESTS
        self.ended = asyncio.Event()
        self.exchanges = Exchanges(writer, is_private=is_private)
        self.pace = reader.pace
        reader.tap = self.exchanges.take
        reader.answers = self.exchanges.settle
        reader.is_list = self.exchanges.is_list

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the SDK's dispatcher; `ended` is set when it ends for any reason."""
        try:
            await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
        finally:
            self.exchanges.close()
            self.ended.set()


class UnusableConnectionError(Exception):
    """The call failed; the connection is unusable. If `not_executed`, the call may be sent again on
    a new one."""

    def __init__(self, failure: McpFailure, *, not_executed: bool, needs_auth: bool) -> None:
        super().__init__(failure.detail)
        self.failure = failure
        self.not_executed = not_executed
        self.needs_auth = needs_auth


class ServerSession:
    """A negotiated connection. Calls run concurrently, each cancelled separately. With declared
    tools in `lists`, only calls are sent."""

    def __init__(
        self,
        *,
        session: ClientSession,
        dispatcher: ObservedDispatcher,
        transport: ServerTransport,
        client: Implementation,
        asked_calls: AskedCalls,
        lists: ToolLists,
    ) -> None:
        assert session.protocol_version is not None  # negotiated
        self.facts = ServerFacts.of(session, session.protocol_version)
        self.client = session
        self._dispatcher = dispatcher
        self._transport = transport
        self.is_modern = self._is_modern = session.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._headers = {MCP_PROTOCOL_VERSION_HEADER: version} if (version := session.protocol_version) else {}
        self._meta: dict[str, Any] = {}
        if self._is_modern:
            self._meta = {
                PROTOCOL_VERSION_META_KEY: session.protocol_version,
                CLIENT_INFO_META_KEY: client.model_dump(by_alias=True, mode="json", exclude_none=True),
                CLIENT_CAPABILITIES_META_KEY: CAPABILITIES,
            }
        # Capabilities of the client are sent with each request (MCP 2026-07-28, basic/lifecycle).
        self._asking_meta = {**self._meta, CLIENT_CAPABILITIES_META_KEY: _ELICITATION} if self._is_modern else {}
        self._header_maps: Mapping[str, HeaderMap] | None = None
        self._definitions: Mapping[str, McpToolDefinition] | None = None
        self._generation = 0
        self._listing = asyncio.Lock()
        self._exchanges = dispatcher.exchanges
        self._cancellations: set[asyncio.Task[None]] = set()
        self._asked_calls = asked_calls
        self._lists = lists
        self._log_level: LogLevel | None = None

    @property
    def is_over(self) -> bool:
        return self._dispatcher.ended.is_set()

    async def call_tool(self, call: McpCall, deadline: float, on_progress: ProgressCallback | None) -> McpReply:
        """Execute a call by `deadline` (event loop time). Raises McpFailure,
        UnusableConnectionError."""
        if call.definition is not None:
            self._check_definition(call, self._definitions or await self._listed_definitions(deadline))
        try:
            return await self._reply(call, deadline, on_progress)
        except McpFailure as exc:
            if exc.rpc_code != HEADER_MISMATCH or not self._is_modern or self._header_maps is not None:
                raise
        # The server requires arguments in headers and did not execute the call: its list of tools
        # names them.
        await self.list_tools(deadline)
        return await self._reply(call, deadline, on_progress)

    async def ask(self, request: ContentRequest, deadline: float) -> dict[str, Any]:
        """Send a content request. Raises McpFailure, UnusableConnectionError."""
        named_by = _NAMED_BY.get(request.method)
        headers: dict[str, str] = {}
        if self._is_modern and named_by is not None:
            headers[MCP_NAME_HEADER] = encode_header_value(str(request.params.get(named_by, "")))
        meta = self._asking_meta if request.accepts_input else self._meta
        return await self._request(request.method, {**request.params}, deadline, headers=headers, meta=meta)

    async def list_tools(self, deadline: float) -> ToolListing:
        """List all tools by `deadline`, in the server's pace; none if the server lacks the method.
        Raises McpFailure (BUSY if that is too late), UnusableConnectionError."""

        async def list_page(cursor: str | None) -> Mapping[str, Any]:
            params = {} if cursor is None else {"cursor": cursor}
            pace = self._dispatcher.pace
            await pace.wait_to_work(deadline)
            try:
                page = await self._request("tools/list", params, deadline)
            except McpFailure as exc:
                if exc.rpc_code == METHOD_NOT_FOUND and cursor is None:
                    return {"tools": []}
                raise
            pace.charge_work(PAGE + TOOL * len(tools if isinstance(tools := page.get("tools"), list) else ()))
            return page

        generation = self._generation
        listing = await self._lists.read(list_page)
        self._header_maps = listing.header_maps
        if generation == self._generation:
            self._definitions = {tool.name: tool for tool in listing.tools}
        return listing

    def definitions_changed(self) -> None:
        """Discard the definitions: the server reported changed tools."""
        self._generation += 1
        self._definitions = None

    @staticmethod
    def _check_definition(call: McpCall, definitions: Mapping[str, McpToolDefinition]) -> None:
        """Reject a call whose tool definition differs from the server's; the server rejects
        unlisted tools itself."""
        if call.definition and (found := definitions.get(call.tool_name)) and not found.is_same_as(call.definition):
            raise McpFailure(McpFailureKind.DEFINITION_CHANGED, "The server has changed the definition of the tool.")

    async def _listed_definitions(self, deadline: float) -> Mapping[str, McpToolDefinition]:
        """The tools listed on this connection; concurrent calls share one listing."""
        try:
            async with asyncio.timeout_at(deadline), self._listing:
                if self._definitions is not None:
                    return self._definitions
                return {tool.name: tool for tool in (await self.list_tools(deadline)).tools}
        except TimeoutError as exc:
            if self._dispatcher.pace.work_delay_s > 0:
                raise self._dispatcher.pace.too_often() from exc
            raise McpFailure(McpFailureKind.TIMEOUT, "The server did not list its tools in time.") from exc

    async def ping(self, deadline: float) -> TransportFault | None:
        """None if the server answers by `deadline`, else the reason why the connection is
        unusable."""
        try:
            await self._request("ping", {}, deadline)
        except UnusableConnectionError as exc:
            return TransportFault(kind=exc.failure.kind, detail=exc.failure.detail, needs_auth=exc.needs_auth)
        except McpFailure as exc:
            return SILENT if exc.kind is McpFailureKind.TIMEOUT else None
        return None

    async def drain(self, timeout_s: float) -> None:
        """Wait until pending cancellations are sent, at most `timeout_s`."""
        if self._cancellations:
            await asyncio.wait(self._cancellations, timeout=timeout_s)
        for task in self._cancellations:
            task.cancel()

    async def _set_log_level(self, level: LogLevel, deadline: float) -> None:
        """Set a legacy server's log level to the least severe that a call wants; the call's own
        filter applies later."""
        if self._is_modern or not self.facts.has_log_levels:
            return
        if self._log_level is not None and self._log_level.covers(level):
            return
        self._log_level = level
        try:
            await self._request("logging/setLevel", {"level": level.value}, deadline)
        except McpFailure as exc:
            if exc.kind is not McpFailureKind.SERVER_ERROR:
                self._log_level = None
                raise

    async def _reply(self, call: McpCall, deadline: float, on_progress: ProgressCallback | None) -> McpReply:
        if call.logs is not None:
            await self._set_log_level(call.logs.level, deadline)
        if self._is_modern:  # modern servers send no requests during calls
            return read_reply(await self._call(call, deadline, on_progress, None))
        with self._asked_calls.during(call) as asked:
            try:
                reply = read_reply(await self._call(call, deadline, on_progress, asked))
            except McpFailure as exc:
                if not asked.questions or exc.kind is not McpFailureKind.SERVER_ERROR:
                    raise
                words = ContentBlock(kind=ContentKind.TEXT, text=exc.detail)
                reply = McpReply(is_error=True, content=(words,))
        if asked.questions:
            return replace(reply, input_required=McpInputRequired(questions=tuple(asked.questions), ended=True))
        return reply

    def _call(
        self, call: McpCall, deadline: float, on_progress: ProgressCallback | None, asked: AskedCall | None
    ) -> Coroutine[None, None, dict[str, Any]]:
        params: dict[str, Any] = {"name": call.tool_name, "arguments": call.arguments}
        if call.meta:
            params["_meta"] = dict(call.meta)
        if call.input_responses is not None:
            params["inputResponses"] = dict(call.input_responses)
        if call.request_state is not None:
            params["requestState"] = call.request_state
        headers: dict[str, str] = {}
        if self._is_modern:
            headers[MCP_NAME_HEADER] = _header_value(call.tool_name)
            header_map = (self._header_maps or {}).get(call.tool_name)
            if header_map:
                headers |= mcp_param_headers(header_map, call.arguments)
        meta = self._asking_meta if call.accepts_input else self._meta
        if call.relay is not None and self._is_modern:
            meta = {**self._meta, CLIENT_CAPABILITIES_META_KEY: {**CAPABILITIES, **call.relay.capabilities}}
        if call.logs is not None:
            meta = {**meta, LOG_LEVEL_META_KEY: call.logs.level.value}
        return self._request(
            "tools/call",
            params,
            deadline,
            headers=headers,
            meta=meta,
            on_progress=on_progress,
            asked=asked,
            call=call,
        )

    async def _request(
        self,
        method: str,
        params: dict[str, Any],
        deadline: float,
        *,
        headers: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        on_progress: ProgressCallback | None = None,
        asked: AskedCall | None = None,
        call: McpCall | None = None,
    ) -> dict[str, Any]:
        if self._is_modern:
            params["_meta"] = {**params.get("_meta", {}), **(meta or self._meta)}
        request_id = self._exchanges.new_id()
        headers, logs = {**self._headers, **(headers or {})}, None if call is None else call.logs
        if self._is_modern:
            headers[MCP_METHOD_HEADER] = method
        try:
            with Deadline(deadline) as timeout:
                if asked is not None:
                    asked.timeout = timeout
                logs = None if call is None else call.logs
                return await self._exchanges.request(
                    request_id, method, params, headers=headers, on_progress=on_progress, logs=logs
                )
        except TimeoutError as exc:
            self._abandon(request_id, "timed out")
            raise McpFailure(McpFailureKind.TIMEOUT, "The server did not answer in time.") from exc
        except asyncio.CancelledError:
            if call is None or call.moves is None or not call.moves():
                self._abandon(request_id, "cancelled")
            raise
        except MCPError as exc:
            raise self._failure(exc) from exc

    def _failure(self, error: MCPError) -> McpFailure | UnusableConnectionError:
        is_over = self.is_over or is_closed(error)
        failure = call_failure(error, is_over=is_over, end=self._transport.describe_end())
        failure.stderr = self._transport.stderr() if is_over else ""
        fault = fault_in(error) or (BROKEN if is_over else None)
        if fault is None or not (fault.over or fault.needs_auth):
            return failure
        return UnusableConnectionError(failure, not_executed=fault.not_executed, needs_auth=fault.needs_auth)

    def _abandon(self, request_id: str, reason: str) -> None:
        """Cancel the request at the server, without waiting (MCP utilities/cancellation)."""
        if self.is_over or self._lists.declared or (self._is_modern and self._transport.disconnect_cancels):
            return
        task = asyncio.create_task(self._send_cancelled(request_id, reason), name="mcp-cancel")
        self._cancellations.add(task)
        task.add_done_callback(self._cancellations.discard)

    async def _send_cancelled(self, request_id: str, reason: str) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CANCEL_TIMEOUT_S):
                params: dict[str, Any] = {"requestId": request_id, "reason": reason}
                if self._is_modern:
                    params["_meta"] = self._meta
                await self._dispatcher.notify("notifications/cancelled", params)
