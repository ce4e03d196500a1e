"""Live connections to MCP servers: the `McpConnections` port over the official SDK's client.

Opened at the first call, pooled by who may share them, closed when idle, released, forgotten or at the end.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar

from mcp.types import Implementation

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpFailure,
    McpFailureKind,
    McpReply,
    ProgressCallback,
    ServerState,
    ServerStatus,
)
from application.system.ports import Clock
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import Isolation, McpServer, McpServerKind
from infrastructure.mcp.connection import McpConnection
from infrastructure.mcp.connection_key import ConnectionKey, connection_key
from infrastructure.mcp.negotiation import Negotiate, negotiate_any, negotiate_handshake
from infrastructure.mcp.server_record import ServerRecord
from infrastructure.mcp.server_session import ServerFacts, ServerSession, UnusableConnectionError
from infrastructure.mcp.stdio import StderrLog
from infrastructure.mcp.tool_changes import ToolChanges, ToolsChanged
from infrastructure.mcp.transports import OpenTransport

logger = logging.getLogger(__name__)

DEFAULT_CONNECT_TIMEOUT_S = 30.0
DEFAULT_CLOSE_TIMEOUT_S = 5.0

_Answer = TypeVar("_Answer")


class SdkMcpConnections:
    """Enter it before use; leaving closes every connection in parallel, within about twice `close_timeout_s`.

    `on_tools_changed` is awaited, one at a time per connection, when a connected server says that its tools changed.
    `redact` takes secrets out of what servers print. `negotiate` settles the protocol version with servers that are not
    of kind `sse`.
    """

    def __init__(
        self,
        *,
        transports: OpenTransport,
        clock: Clock,
        client_version: str,
        on_tools_changed: ToolsChanged | None = None,
        redact: Callable[[str], str] = str,
        negotiate: Negotiate = negotiate_any,
        connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S,
        close_timeout_s: float = DEFAULT_CLOSE_TIMEOUT_S,
    ) -> None:
        self._transports = transports
        self._clock = clock
        self._client = Implementation(name="dragoman", version=client_version)
        self._on_tools_changed = on_tools_changed
        self._redact = redact
        self._negotiate = negotiate
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._pool: dict[ConnectionKey, McpConnection] = {}
        self._live: dict[McpConnection, _Life] = {}
        self._records: dict[tuple[McpServerId, int], ServerRecord] = {}
        self._logs: dict[McpServerId, StderrLog] = {}
        self._is_closed = False

    @property
    def connection_count(self) -> int:
        """How many connections there are, those that are opening or closing included."""
        return len(self._live)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends every connection and waits for it; later calls fail. Never raises."""
        self._is_closed = True
        ending = dict(self._live)
        for connection in ending:
            self._drop(connection)
            connection.stop()
        closed = await asyncio.gather(*(connection.closed(self._close_timeout_s) for connection in ending))
        for life, is_closed in zip(ending.values(), closed, strict=True):
            if not is_closed:
                logger.error("an MCP connection does not end", extra={"server_id": life.record.server.id})
        await self._transports.close()

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Send one call and wait for its answer. Raises McpFailure. Cancelling the wait cancels the call by protocol."""
        record = self._admit(server)
        deadline = asyncio.get_running_loop().time() + call.timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                await record.places.acquire()
        except TimeoutError as exc:
            detail = "The server is busy: too many calls to it are under way."
            raise McpFailure(McpFailureKind.TIMEOUT, detail) from exc
        try:
            return await self._talk(
                record, scope, deadline, lambda session: session.call_tool(call, deadline, on_progress)
            )
        finally:
            record.places.release()

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """Connect if needed and list all tools (all pages). Raises McpFailure.

        Asked for by a person or a schedule, so it does not wait for the pause after an earlier failure.
        """
        record = self._admit(server)
        record.forgive()
        deadline = asyncio.get_running_loop().time() + timeout_s
        catalog = await self._talk(record, scope, deadline, lambda session: self._list(server, session, deadline))
        record.tool_count = len(catalog.tools)
        return catalog

    async def release(self, scope: ConnectionScope) -> None:
        """The run of `scope` is over, or the thread if it names no run: its own connections begin to close.

        Returns at once: a server may take seconds to go, and the next run need not wait for that.
        """
        isolation, scope_id = (
            (Isolation.RUN, scope.run_id) if scope.run_id is not None else (Isolation.THREAD, scope.thread_id)
        )
        if scope_id is None:
            return
        for connection, life in list(self._live.items()):
            key = life.key
            if key and (key.organization_id, key.isolation, key.scope_id) == (
                scope.organization_id,
                isolation,
                scope_id,
            ):
                self._drop(connection)
                connection.stop()

    def status(self, server: McpServer) -> ServerStatus:
        """The state in this process."""
        if not server.config.enabled:
            return ServerStatus(state=ServerState.DISABLED, since=server.updated_at)
        if record := self._records.get((server.id, server.version)):
            return record.status
        return ServerStatus(state=ServerState.DISCONNECTED, since=server.updated_at)

    def logs(self, server: McpServer) -> str:
        """The bounded tail of the error output of a started server."""
        log = self._logs.get(server.id)
        return self._redact(log.text()) if log else ""

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """The server was changed or removed: its connections end once their calls are done, without being waited for."""
        for connection, life in list(self._live.items()):
            if (life.record.server.organization_id, life.record.server.id) == (organization_id, server_id):
                self._drop(connection)
        for key, record in list(self._records.items()):
            if (record.server.organization_id, record.server.id) == (organization_id, server_id):
                del self._records[key]
                self._logs.pop(server_id, None)

    def _admit(self, server: McpServer) -> ServerRecord:
        if not server.config.enabled:
            raise McpFailure(McpFailureKind.DISABLED, "The MCP server is disabled.")
        if self._is_closed:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "Connections are being closed.")
        record = self._records.get((server.id, server.version))
        if record is None:
            record = self._records[server.id, server.version] = ServerRecord(server, self._clock)
        return record

    async def _talk(
        self,
        record: ServerRecord,
        scope: ConnectionScope,
        deadline: float,
        say: Callable[[ServerSession], Awaitable[_Answer]],
    ) -> _Answer:
        """Talk to the server on a connection for `scope`; on a second one if the first turned out to be of no use before
        the server did anything."""
        for is_last in (False, True):
            async with self._connection(record, scope, deadline) as connection:
                session = await connection.session(deadline)
                try:
                    return await say(session)
                except UnusableConnectionError as exc:
                    self._drop(connection)
                    if is_last or not exc.not_executed or exc.needs_auth:
                        record.troubled(exc.failure.detail, needs_auth=exc.needs_auth)
                        raise exc.failure from exc
        raise AssertionError("the second attempt returns or raises")

    @asynccontextmanager
    async def _connection(
        self, record: ServerRecord, scope: ConnectionScope, deadline: float
    ) -> AsyncIterator[McpConnection]:
        """The connection `scope` uses, kept from becoming idle; one that nobody else may use ends with the block."""
        key = connection_key(record.server, scope)
        connection = self._pooled(key)
        if connection is None and (pause_s := record.pause_s) > 0:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(min(pause_s, max(0.0, deadline - loop.time())))
            connection = self._pooled(key)  # another call may have opened it meanwhile
        if connection is None:
            connection = self._open(record, key)
        connection.enter()
        try:
            yield connection
        finally:
            connection.leave()
            if key is None:
                connection.stop()

    def _pooled(self, key: ConnectionKey | None) -> McpConnection | None:
        connection = self._pool.get(key) if key is not None else None
        return connection if connection is not None and connection.is_usable else None

    def _open(self, record: ServerRecord, key: ConnectionKey | None) -> McpConnection:
        if self._is_closed:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "Connections are being closed.")
        server = record.server
        log = self._logs.setdefault(server.id, StderrLog())
        life = _Life(record, key, self._ended)
        listens = self._on_tools_changed is not None and server.config.isolation is not Isolation.RUN
        if self._on_tools_changed is not None and listens:
            life.changes = ToolChanges(server, self._on_tools_changed)
        connection = McpConnection(
            transport=self._transports(server, log),
            negotiate=negotiate_handshake if server.config.kind is McpServerKind.SSE else self._negotiate,
            client=self._client,
            events=life,
            connect_timeout_s=self._connect_timeout_s,
            idle_timeout_s=server.config.idle_timeout_s,
            on_tools_changed=life.changes.announce if life.changes else None,
        )
        life.connection = connection
        record.connecting()
        self._live[connection] = life
        if key is not None:
            self._pool[key] = connection
        return connection

    def _drop(self, connection: McpConnection) -> None:
        """No new uses of it."""
        life = self._live.get(connection)
        if life is not None and life.key is not None and self._pool.get(life.key) is connection:
            del self._pool[life.key]
        connection.retire()

    def _ended(self, connection: McpConnection) -> None:
        life = self._live.pop(connection, None)
        if life is not None and life.key is not None and self._pool.get(life.key) is connection:
            del self._pool[life.key]

    async def _list(self, server: McpServer, session: ServerSession, deadline: float) -> McpCatalog:
        listing = await session.list_tools(deadline)
        return McpCatalog(
            server_id=server.id,
            server_version=server.version,
            protocol_version=session.facts.protocol_version,
            server_name=session.facts.name or server.config.slug,
            instructions=session.facts.instructions,
            tools=listing.tools,
            skipped=listing.skipped,
            taken_at=self._clock.now(),
        )


class _Life:
    """What becomes of one connection, told to the server's record and, in the end, to the pool."""

    def __init__(
        self, record: ServerRecord, key: ConnectionKey | None, on_end: Callable[[McpConnection], None]
    ) -> None:
        self.record = record
        self.key = key
        self.connection: McpConnection | None = None
        self.changes: ToolChanges | None = None
        self._on_end = on_end
        self._is_open = False
        self._is_told = False

    def connected(self, facts: ServerFacts) -> None:
        self._is_open = True
        self.record.connected(facts.protocol_version)

    def failed(self, failure: McpFailure, *, needs_auth: bool) -> None:
        self._is_told = True
        self.record.failed(failure, needs_auth=needs_auth)

    def lost(self, detail: str) -> None:
        self._is_told = True
        self.record.disconnected(detail)

    def ended(self) -> None:
        if not self._is_told:
            if self._is_open:
                self.record.disconnected()
            else:
                self.record.abandoned()
        if self.changes is not None:
            self.changes.close()
        if self.connection is not None:
            self._on_end(self.connection)
