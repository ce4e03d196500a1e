"""Pool of live connections to MCP servers: the `McpConnections` port over the official SDK's
client. A connection opens at the first call and closes when idle, released, forgotten, or at
shutdown."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from mcp.types import METHOD_NOT_FOUND, Implementation

from application.mcp.account_secrets import PersonSecretStore
from application.mcp.contents import ContentRequest
from application.mcp.news import Listed
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
from application.system.shared_permits import SharedPermits
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.given_secrets import is_process_of_person
from domain.mcp.restarts import RestartLimit
from domain.mcp.server import Credentials, Isolation, McpServer
from infrastructure.mcp.catalogs.server_catalog import catalog_of, declared_catalog
from infrastructure.mcp.catalogs.tool_changes import ToolChanges, ToolsChanged
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_key import ConnectionKey, connection_use
from infrastructure.mcp.connections.connection_life import ConnectionLife
from infrastructure.mcp.connections.crashes import Crashes
from infrastructure.mcp.connections.negotiation import Negotiate, negotiate_any, negotiation_with
from infrastructure.mcp.connections.process_limit import ProcessLimit
from infrastructure.mcp.connections.replaced_secrets import ReplacedSecrets
from infrastructure.mcp.connections.resource_following import follow_resources
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.connections.server_record import LOGGED_FAILURES, ServerRecord, StatusChanged
from infrastructure.mcp.connections.server_session import ServerSession, UnusableConnectionError
from infrastructure.mcp.known_secrets import KnownSecrets
from infrastructure.mcp.transports.server_transports import OpenTransport
from infrastructure.mcp.transports.stderr_log import StderrLog

logger = logging.getLogger(__name__)

DEFAULT_CONNECT_TIMEOUT_S, DEFAULT_CLOSE_TIMEOUT_S, DEFAULT_KEEP_ALIVE_S = 30.0, 5.0, 30.0
DEFAULT_MAX_PROCESSES = 100

_Answer = TypeVar("_Answer")


class SdkMcpConnections:
    """Enter it before use; leaving closes all connections in parallel, within about twice
    `close_timeout_s`.

    - `on_tools_changed` is awaited, one call at a time per connection, when a server reports
      changed tools.
    - `on_lost` is called when the shared connection of a server is lost.
    - `on_status` is called when the state of a server changes.
    - `on_listed` is called when a server reports changed resources or prompts.
    - `known_secrets` are redacted from the output and the replies of servers; `person_secrets` are
      what people gave.
    - `negotiate` negotiates the protocol version with servers of all kinds but `sse`.
    - An organization has at most `max_processes` started servers, with `permits` in all processes.
      A further one replaces the one idle for longest, or waits.
    """

    def __init__(
        self,
        *,
        transports: OpenTransport,
        clock: Clock,
        client_version: str,
        on_tools_changed: ToolsChanged | None = None,
        on_lost: Callable[[McpServer], None] | None = None,
        on_status: StatusChanged | None = None,
        on_listed: Listed | None = None,
        known_secrets: KnownSecrets,
        person_secrets: PersonSecretStore | None = None,
        negotiate: Negotiate = negotiate_any,
        connect_timeout_s: float = DEFAULT_CONNECT_TIMEOUT_S,
        close_timeout_s: float = DEFAULT_CLOSE_TIMEOUT_S,
        keep_alive_s: float = DEFAULT_KEEP_ALIVE_S,
        max_processes: int = DEFAULT_MAX_PROCESSES,
        permits: SharedPermits | None = None,
        restart_limit: RestartLimit | None = None,
    ) -> None:
        self._transports = transports
        self._clock = clock
        self._client = Implementation(name="dragoman", version=client_version)
        self._on_tools_changed = on_tools_changed
        self._known_secrets, self._person_secrets = known_secrets, person_secrets
        self._on_lost = on_lost
        self._on_status = on_status
        self._on_listed = on_listed
        self._negotiate = negotiate
        self._connect_timeout_s, self._close_timeout_s = connect_timeout_s, close_timeout_s
        self._keep_alive_s = keep_alive_s
        self._crashes = Crashes(restart_limit or RestartLimit())
        self._pool: dict[ConnectionKey, McpConnection] = {}
        self._live: dict[McpConnection, ConnectionLife] = {}
        self._replaced = ReplacedSecrets(self._live, end=self._drop, person_secrets=person_secrets)
        self.accounts_changed = self._replaced.look
        self._processes = ProcessLimit(max_processes, self._live, end=self._drop, permits=permits)
        self._records: dict[tuple[OrganizationId, McpServerId, int], ServerRecord] = {}
        self._logs: dict[tuple[OrganizationId, McpServerId], StderrLog] = {}
        self._is_closed = False

    @property
    def connection_count(self) -> int:
        """Number of connections, with those that are opening or closing."""
        return len(self._live)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection and wait for it; later calls fail. Never raises."""
        self._is_closed = True
        await self._replaced.close()
        ending = dict(self._live)
        for connection in ending:
            self._drop(connection)
            connection.stop()
        closed = await asyncio.gather(*(connection.closed(self._close_timeout_s) for connection in ending))
        for life, is_closed in zip(ending.values(), closed, strict=True):
            if not is_closed:
                logger.error("an MCP connection did not end in time", extra={"server_id": life.record.server.id})
        await self._transports.close()

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Raises: McpFailure. Cancelling the wait cancels the call by protocol."""
        record, known, acting = self._admit(server), self._known_secrets, server.acting_for(scope.person_id)
        deadline = asyncio.get_running_loop().time() + call.timeout_s

        def send(session: ServerSession) -> Awaitable[McpReply]:
            # The secrets of the server are known only once it is connected.
            return session.call_tool(known.hiding_in(acting, call), deadline, known.hiding(acting, on_progress))

        try:
            return known.hide_in(acting, await self._request(record, scope, deadline, send))
        except McpFailure as failure:
            known.hide_in_failure(acting, failure)
            if failure.kind in LOGGED_FAILURES:
                self._log_of(record).note(f"{call.tool_name}: {failure.detail}")
            raise

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        _require_contents(server)
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        acting = server.acting_for(scope.person_id)
        with self._known_secrets.hidden_in_failures(acting):
            result = await self._request(self._admit(server), scope, deadline, lambda one: one.ask(request, deadline))
        return self._known_secrets.hide_in_json(acting, result)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        _require_contents(server)
        deadline = asyncio.get_running_loop().time() + self._connect_timeout_s
        record, (key, acting) = self._admit(server), await connection_use(server, scope, self._person_secrets)
        connection = self._pooled(key) or await self._opened(record, acting, key, deadline)
        connection.enter()
        try:
            await follow_resources(connection, await connection.session(deadline), wanted)
        finally:
            self._left(connection, key)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """List all tools, without the pause after a failure. Declared ones need no connection."""
        record = self._admit(server)
        record.hurry()
        if server.config.answers_calls_only:
            catalog = await declared_catalog(server, at=self._clock.now())
        else:
            deadline = asyncio.get_running_loop().time() + timeout_s
            catalog = await self._request(
                record, scope, deadline, lambda session: self._list(server, session, deadline)
            )
        record.listed(len(catalog.tools))
        return catalog

    async def release(self, scope: ConnectionScope) -> None:
        """End the connections of the scope's run or gateway session, or of its thread if it names
        neither. Returns at once: a server may take seconds to end, and the next run need not wait
        for it."""
        of_run = scope.run_id or scope.gateway_session_id
        isolation, scope_id = (Isolation.RUN, of_run) if of_run is not None else (Isolation.THREAD, scope.thread_id)
        if scope_id is None:
            return

        def is_its_own(key: ConnectionKey) -> bool:
            own = (scope.organization_id, isolation, scope_id)
            return (key.organization_id, key.isolation, key.scope_id) == own

        self._crashes.release(is_its_own)
        for connection, life in list(self._live.items()):
            if life.key is not None and is_its_own(life.key):
                self._drop(connection)
                connection.stop()

    def status(self, server: McpServer) -> ServerStatus:
        """The state in this process."""
        if not server.config.enabled:
            return ServerStatus(state=ServerState.DISABLED, since=server.updated_at)
        if record := self._records.get((server.organization_id, server.id, server.version)):
            return record.status
        return ServerStatus(state=ServerState.DISCONNECTED, since=server.updated_at)

    def logs(self, server: McpServer) -> str:
        """The bounded tail of a started server's error output, and of call failures."""
        log = self._logs.get((server.organization_id, server.id))
        return self._known_secrets.redact(server, log.text()) if log else ""

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """Reset crashes and connection failures."""
        self._crashes.forgive(organization_id, server_id)
        for record in self._records.values():
            if (record.server.organization_id, record.server.id) == (organization_id, server_id):
                record.forgive()

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """The server was changed, removed or disconnected: its connections end once their calls
        end. Does not wait; what it says or how it ends meanwhile does not connect it again."""
        for connection, life in list(self._live.items()):
            if (life.record.server.organization_id, life.record.server.id) == (organization_id, server_id):
                self._drop(connection)
                life.listen_no_more()
        self._crashes.forgive(organization_id, server_id)
        for key, record in list(self._records.items()):
            if (record.server.organization_id, record.server.id) == (organization_id, server_id):
                del self._records[key]
                record.forgotten()
                self._logs.pop((organization_id, server_id), None)

    def _admit(self, server: McpServer) -> ServerRecord:
        if not server.config.enabled:
            raise McpFailure(McpFailureKind.DISABLED, "The MCP server is disabled.")
        if self._is_closed:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "Connections are being closed.")
        key = (server.organization_id, server.id, server.version)
        record = self._records.get(key)
        if record is None:
            # What no person uses has no account to connect with.
            is_shared = (
                server.config.isolation is Isolation.SHARED and server.config.credentials is not Credentials.PERSON
            )
            on_lost = self._on_lost if is_shared else None
            record = self._records[key] = ServerRecord(server, self._clock, on_lost, self._on_status)
        return record

    async def _request(
        self,
        record: ServerRecord,
        scope: ConnectionScope,
        deadline: float,
        send: Callable[[ServerSession], Awaitable[_Answer]],
    ) -> _Answer:
        """Use a connection of `scope`; use a second one if the first proved unusable before the
        server executed anything."""
        key, acting = await connection_use(record.server, scope, self._person_secrets)
        for is_last in (False, True):
            connection = self._pooled(key) or await self._opened(record, acting, key, deadline)
            connection.enter()
            try:
                return await send(connection.open_session or await connection.session(deadline))
            except UnusableConnectionError as exc:
                self._drop(connection)
                if is_last or not exc.not_executed or exc.needs_auth:
                    if not (acting.person_id and (exc.needs_auth or is_process_of_person(acting))):
                        record.troubled(exc.failure.detail, needs_auth=exc.needs_auth)
                    raise exc.failure from exc
            finally:
                self._left(connection, key)
        raise AssertionError("the second attempt returns or raises")

    async def _opened(
        self, record: ServerRecord, acting: McpServer, key: ConnectionKey | None, deadline: float
    ) -> McpConnection:
        """Open a connection for immediate use; release it with `_left`. Raises McpFailure."""
        await self._wait_to_open(record, key, deadline)
        return self._pooled(key) or self._open(record, acting, key)  # another call may have opened it meanwhile

    def _left(self, connection: McpConnection, key: ConnectionKey | None) -> None:
        """End a use, and the connection if no other use shares it."""
        connection.leave()
        if key is None:
            connection.stop()
        self._processes.freed()

    async def _wait_to_open(self, record: ServerRecord, key: ConnectionKey | None, deadline: float) -> None:
        """Wait until a connection may be opened, or another call has opened it; returns without
        yielding then. Raises: McpFailure NOT_CONNECTED during the cool-down after crashes, BUSY if
        the process limit is still reached at `deadline`."""
        cool_down_s = self._crashes.pause_left_s(key, self._clock.monotonic())
        if cool_down_s > 0:
            detail = "The server crashed too often and is in a cool-down."
            raise McpFailure(McpFailureKind.NOT_CONNECTED, detail, retry_after_s=cool_down_s)
        loop = asyncio.get_running_loop()
        if (pause_s := record.pause_s) > 0:
            await asyncio.sleep(min(pause_s, max(0.0, deadline - loop.time())))
        if not record.server.config.kind.is_remote:
            await self._processes.wait(record.server.organization_id, lambda: self._pooled(key) is None, deadline)

    def _pooled(self, key: ConnectionKey | None) -> McpConnection | None:
        connection = self._pool.get(key) if key is not None else None
        return connection if connection is not None and connection.is_usable else None

    def _open(self, record: ServerRecord, server: McpServer, key: ConnectionKey | None) -> McpConnection:
        if self._is_closed:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "Connections are being closed.")
        life = ConnectionLife(
            record, key, self._clock, self._lost, self._ended, is_of_person=server.person_id is not None
        )
        config = server.config
        outlives_runs = config.isolation is not Isolation.RUN and not config.answers_calls_only
        if self._on_tools_changed is not None and outlives_runs:
            life.changes = ToolChanges(server, self._on_tools_changed)
        connection = McpConnection(
            transport=self._transports(server, self._log_of(record)),
            negotiate=negotiation_with(config, self._negotiate),
            client=self._client,
            events=life,
            connect_timeout_s=self._connect_timeout_s,
            idle_timeout_s=config.idle_timeout_s,
            asks=config.asks,
            lists=record.lists,
            is_private=config.isolation is not Isolation.SHARED,
            keep_alive_s=self._keep_alive_s if outlives_runs else None,
            on_tools_changed=life.changes.announce if life.changes else None,
            on_listed=None if self._on_listed is None or key is None else partial(self._on_listed, *key.named),
        )
        life.connection = connection
        record.connecting()
        self._live[connection] = life
        if key is not None:
            self._pool[key] = connection
        return connection

    def _log_of(self, record: ServerRecord) -> StderrLog:
        """The server's log; a detached one for a server that was forgotten meanwhile."""
        if not self._is_known(record):
            return StderrLog()
        return self._logs.setdefault((record.server.organization_id, record.server.id), StderrLog())

    def _is_known(self, record: ServerRecord) -> bool:
        server = record.server
        return self._records.get((server.organization_id, server.id, server.version)) is record

    def _drop(self, connection: McpConnection) -> None:
        """Accept no new uses."""
        life = self._live.get(connection)
        if life is not None and life.key is not None and self._pool.get(life.key) is connection:
            del self._pool[life.key]
        connection.retire()

    def _lost(self, life: ConnectionLife, lived_s: float) -> None:
        """Record a crash if the lost connection was to a started process."""
        record, key = life.record, life.key
        if key is None or record.server.config.kind.is_remote:
            return
        if not self._is_known(record):
            return  # forgotten meanwhile: the crash history is not needed
        cool_down_s = self._crashes.crashed(key, lived_s=lived_s, now=self._clock.monotonic())
        if cool_down_s > 0 and not life.is_process_of_person:
            record.given_up(cool_down_s)

    def _ended(self, connection: McpConnection) -> None:
        life = self._live.pop(connection, None)
        if life is not None and life.key is not None and self._pool.get(life.key) is connection:
            del self._pool[life.key]
        self._processes.freed()

    async def _list(self, server: McpServer, session: ServerSession, deadline: float) -> McpCatalog:
        return await catalog_of(
            server,
            await session.list_tools(deadline),
            at=self._clock.now(),
            protocol_version=session.facts.protocol_version,
            server_name=session.facts.name,
            instructions=session.facts.instructions,
        )


def _require_contents(server: McpServer) -> None:
    """Raises McpFailure for a server that is sent calls only."""
    if server.config.answers_calls_only:
        raise McpFailure(McpFailureKind.SERVER_ERROR, "The server answers tool calls only.", rpc_code=METHOD_NOT_FOUND)
