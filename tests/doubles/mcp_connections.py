"""MCP servers as Python functions: connections that a use-case test scripts, breaks and reads
back."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from application.mcp.caller_relay import CallerRelay
from application.mcp.contents import ContentMethod, ContentRequest
from application.mcp.log_messages import LogCallback
from application.mcp.news import Release
from application.mcp.ports import (
    ConnectionScope,
    ContentBlock,
    ContentKind,
    McpCall,
    McpFailure,
    McpFailureKind,
    McpProgress,
    McpReply,
    ProgressCallback,
    ServerState,
    ServerStatus,
)
from domain.ids import McpServerId, OrganizationId
from domain.json_value import JsonObject, JsonValue
from domain.mcp.catalog import McpCatalog, McpToolDefinition, SkippedTool
from domain.mcp.server import Isolation, McpServer
from domain.mcp.used_tools import used_tools
from infrastructure.mcp.catalogs.server_catalog import declared_catalog
from infrastructure.mcp.connections.connection_key import ConnectionKey, connection_key

_INVALID_PARAMS = -32602
_METHOD_NOT_FOUND = -32601
_START = datetime(2026, 1, 1, tzinfo=UTC)


def text_reply(text: str, *, is_error: bool = False, structured: JsonValue = None) -> McpReply:
    """A reply of one text block."""
    block = ContentBlock(kind=ContentKind.TEXT, text=text)
    return McpReply(is_error=is_error, content=(block,), structured=structured)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What a handler is called with. `memory` lives as long as the connection, so isolation can be
    seen in it."""

    tool_name: str
    arguments: JsonObject
    scope: ConnectionScope
    meta: Mapping[str, str]
    memory: dict[str, JsonValue]
    report_progress: ProgressCallback
    accepts_input: bool = False
    input_responses: Mapping[str, JsonObject] | None = None
    request_state: str | None = None
    relay: CallerRelay | None = None
    log: LogCallback | None = None
    """Hears what the handler logs, if somebody wants that."""


Handler = Callable[[Invocation], Awaitable[McpReply]]
Answer = McpReply | McpFailure | Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class InMemoryTool:
    """A tool with the definition that `discover` shows."""

    answer: Answer
    description: str = ""
    input_schema: JsonObject = field(default_factory=lambda: {"type": "object"})
    output_schema: JsonObject | None = None
    read_only_hint: bool = False
    idempotent_hint: bool = False
    destructive_hint: bool | None = None
    display: JsonObject = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class InMemoryMcpServer:
    """A server; change it between calls to change what it does. `unreachable` makes connecting
    fail."""

    tools: Mapping[str, InMemoryTool | Answer] = field(default_factory=dict)
    instructions: str | None = None
    skipped: tuple[SkippedTool, ...] = ()
    stderr: str = ""
    unreachable: McpFailure | None = None
    contents: Mapping[ContentMethod, Mapping[str, object]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    """A call that reached a server."""

    server: McpServer
    scope: ConnectionScope
    call: McpCall


class InMemoryMcpConnections:
    """`McpConnections` over scripted servers, by slug. `calls`, `discoveries`, `cancelled`,
    `released` and `forgiven` say what happened, in order; `open_connections` counts what is held
    open."""

    def __init__(self, servers: Mapping[str, InMemoryMcpServer] | None = None, *, now: datetime = _START) -> None:
        self.servers = dict(servers or {})
        self.calls: list[RecordedCall] = []
        self.discoveries: list[McpServer] = []
        self.cancelled: list[McpCall] = []
        self.asked: list[ContentRequest] = []
        self.watched: list[tuple[str, str, Callable[[str], None]]] = []
        self.released: list[ConnectionScope] = []
        self.forgiven: list[McpServerId] = []
        self._now = now
        self._memories: dict[ConnectionKey, dict[str, JsonValue]] = {}
        self._states: dict[tuple[McpServerId, int], ServerStatus] = {}

    @property
    def open_connections(self) -> int:
        """How many connections are held open."""
        return len(self._memories)

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Runs the tool's handler, within the call's time. Raises McpFailure."""
        scripted, memory = self._connect(server, scope)
        tool = scripted.tools.get(call.tool_name)
        answer = tool.answer if isinstance(tool, InMemoryTool) else tool
        if answer is None:
            self.calls.append(RecordedCall(server=server, scope=scope, call=call))
            detail = f"Unknown tool: {call.tool_name}"
            raise McpFailure(McpFailureKind.SERVER_ERROR, detail, rpc_code=_INVALID_PARAMS)
        known = call.definition
        if tool is not None and known is not None and _definition(call.tool_name, tool).digest != known.digest:
            raise McpFailure(McpFailureKind.DEFINITION_CHANGED, "The server describes the tool in another way now.")
        self.calls.append(RecordedCall(server=server, scope=scope, call=call))
        if isinstance(answer, McpFailure):
            raise answer
        if isinstance(answer, McpReply):
            return answer
        invocation = Invocation(
            tool_name=call.tool_name,
            arguments=call.arguments,
            scope=scope,
            meta=call.meta or {},
            memory=memory,
            report_progress=_shielded(on_progress),
            accepts_input=call.accepts_input,
            input_responses=call.input_responses,
            request_state=call.request_state,
            relay=call.relay,
            log=None if call.logs is None else call.logs.tell,
        )
        try:
            async with asyncio.timeout(call.timeout_s):
                return await answer(invocation)
        except TimeoutError as exc:
            detail = f"The server did not answer within {call.timeout_s:g} s."
            raise McpFailure(McpFailureKind.TIMEOUT, detail) from exc
        except asyncio.CancelledError:
            self.cancelled.append(call)
            raise

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """As `McpContents` has it."""
        scripted, _ = self._connect(server, scope)
        self.asked.append(request)
        if request.method not in scripted.contents:
            raise McpFailure(McpFailureKind.SERVER_ERROR, "Method not found", rpc_code=_METHOD_NOT_FOUND)
        return scripted.contents[request.method]

    def watch(self, server: McpServer, scope: ConnectionScope, uri: str, tell: Callable[[str], None]) -> Release:
        """As `McpResourceNews` has it; `watched` says by whom, and is called to say that something
        was updated."""
        watcher = (server.config.slug, uri, tell)
        self.watched.append(watcher)
        return lambda: self.watched.remove(watcher)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """The scripted tools, by name, or those that are declared. Raises McpFailure."""
        if server.config.answers_calls_only:
            return await declared_catalog(server, at=self._now)
        scripted, _ = self._connect(server, scope)
        self.discoveries.append(server)
        status = self._states[server.id, server.version]
        self._states[server.id, server.version] = ServerStatus(
            state=status.state,
            since=status.since,
            protocol_version=status.protocol_version,
            tool_count=len(scripted.tools),
        )
        used, left_out = used_tools(
            server.config, (_definition(name, scripted.tools[name]) for name in sorted(scripted.tools))
        )
        return McpCatalog(
            server_id=server.id,
            server_version=server.version,
            protocol_version="2026-07-28",
            server_name=server.config.slug,
            instructions=scripted.instructions,
            tools=used,
            skipped=(*scripted.skipped, *left_out),
            taken_at=self._now,
        )

    async def release(self, scope: ConnectionScope) -> None:
        """Drops the memory of the run's own connections, or of the thread's if the scope names no
        run."""
        self.released.append(scope)
        isolation, scope_id = (
            (Isolation.RUN, scope.run_id) if scope.run_id is not None else (Isolation.THREAD, scope.thread_id)
        )
        for key in list(self._memories):
            own = (key.organization_id, key.isolation, key.scope_id) == (scope.organization_id, isolation, scope_id)
            if own and scope_id is not None:
                del self._memories[key]

    def status(self, server: McpServer) -> ServerStatus:
        """Connected after a first use, unless that failed."""
        if not server.config.enabled:
            return ServerStatus(state=ServerState.DISABLED, since=self._now)
        disconnected = ServerStatus(state=ServerState.DISCONNECTED, since=self._now)
        return self._states.get((server.id, server.version), disconnected)

    def set_status(self, server: McpServer, status: ServerStatus) -> None:
        """What `status` says from now on, until the next use."""
        self._states[server.id, server.version] = status

    def logs(self, server: McpServer) -> str:
        """The scripted error output."""
        scripted = self.servers.get(server.config.slug)
        return scripted.stderr if scripted else ""

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Nothing is held back here."""
        self.forgiven.append(server_id)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Drops the server's connections."""
        for key in [key for key in self._memories if key.server_id == server_id]:
            if key.organization_id == organization_id:
                del self._memories[key]
        for state in [state for state in self._states if state[0] == server_id]:
            del self._states[state]

    def _connect(self, server: McpServer, scope: ConnectionScope) -> tuple[InMemoryMcpServer, dict[str, JsonValue]]:
        if not server.config.enabled:
            raise McpFailure(McpFailureKind.DISABLED, "The MCP server is disabled.")
        scripted = self.servers.get(server.config.slug)
        failure = scripted.unreachable if scripted else McpFailure(McpFailureKind.NOT_CONNECTED, "No such server.")
        if scripted is None or failure is not None:
            assert failure is not None
            self._states[server.id, server.version] = ServerStatus(
                state=ServerState.ERROR, since=self._now, last_error=failure.detail
            )
            raise failure
        key = connection_key(server, scope)
        memory = {} if key is None else self._memories.setdefault(key, {})
        known = self._states.get((server.id, server.version))
        if known is None or known.state is not ServerState.CONNECTED:
            self._states[server.id, server.version] = ServerStatus(
                state=ServerState.CONNECTED, since=self._now, protocol_version="2026-07-28"
            )
        return scripted, memory


def _definition(name: str, tool: InMemoryTool | Answer) -> McpToolDefinition:
    if not isinstance(tool, InMemoryTool):
        return McpToolDefinition(name=name, description="", input_schema={"type": "object"})
    return McpToolDefinition(
        name=name,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        read_only_hint=tool.read_only_hint,
        idempotent_hint=tool.idempotent_hint,
        destructive_hint=tool.destructive_hint,
        display=tool.display,
    )


def _shielded(on_progress: ProgressCallback | None) -> ProgressCallback:
    """Errors of whoever listens to progress never break the call."""

    async def report(progress: McpProgress) -> None:
        if on_progress is not None:
            try:
                await on_progress(progress)
            except Exception:  # noqa: BLE001 (a listener may raise anything)
                return

    return report
