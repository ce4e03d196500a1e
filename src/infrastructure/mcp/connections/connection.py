"""One live connection to a server. One task connects, serves and closes it, because the SDK's
scopes must not cross tasks. Above: the connection pool (`pool.py`), with calls from any task.
Below: the session on a transport."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Protocol

from mcp import ClientSession
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation, ResourceUpdatedNotification
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from application.mcp.news import ListKind
from application.mcp.ports import McpFailure, McpFailureKind
from domain.mcp.client_request import ClientRequestKind
from infrastructure.mcp.catalogs.list_news import changed_list, listening
from infrastructure.mcp.catalogs.tool_lists import ToolLists
from infrastructure.mcp.connections.asked_calls import AskedCalls
from infrastructure.mcp.connections.negotiation import CAPABILITIES, Negotiate
from infrastructure.mcp.connections.server_facts import ServerFacts
from infrastructure.mcp.connections.server_session import ObservedDispatcher, ServerSession
from infrastructure.mcp.faults import BROKEN, TransportFailedError, TransportFault, connect_failure, fault_in, is_closed
from infrastructure.mcp.pace import Pace
from infrastructure.mcp.transports.server_transports import LateTransport

logger = logging.getLogger(__name__)

_NOT_REACHED = "The MCP server was connected or listed too often and waits for its turn. Nothing was sent."
_DRAIN_S = 0.5
_EXIT_REASON_S = 1.0
_PING_TIMEOUT_S = 10.0
_FIRST_LISTEN_PAUSE_S = 1.0
_LONGEST_LISTEN_PAUSE_S = 60.0


class ConnectionEvents(Protocol):
    """Receiver of a connection's events, called on the event loop in this order; must not raise."""

    def connected(self, facts: ServerFacts) -> None:
        """The connection is open."""
        ...

    def failed(self, failure: McpFailure, *, needs_auth: bool) -> None:
        """The connection could not be opened."""
        ...

    def lost(self, detail: str, *, needs_auth: bool = False) -> None:
        """The connection broke or became unusable after it was open."""
        ...

    def ended(self) -> None:
        """The connection is closed. Always called, last."""
        ...


class McpConnection:
    """A connection, opening from its construction.

    - Call `enter` before each use and `leave` after it. An unused connection ends after
      `idle_timeout_s`.
    - `asks`: requests that the server may send during calls.
    - `lists`: what the server listed before; with declared tools, it is sent calls only.
    - `is_private`: a single run or session uses the connection.
    - `keep_alive_s`: interval of pings while unused, for versions that have pings, to detect a dead
      peer.
    """

    def __init__(
        self,
        *,
        transport: LateTransport,
        negotiate: Negotiate,
        client: Implementation,
        events: ConnectionEvents,
        connect_timeout_s: float,
        idle_timeout_s: float,
        asks: frozenset[ClientRequestKind] = frozenset(),
        lists: ToolLists,
        is_private: bool = False,
        keep_alive_s: float | None = None,
        on_tools_changed: Callable[[], None] | None = None,
        on_listed: Callable[[ListKind], None] | None = None,
    ) -> None:
        self._transport = transport
        self._negotiate = negotiate
        self._client = client
        self._events = events
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._asks = asks
        self._lists = lists
        self._is_private = is_private
        self._keep_alive_s = keep_alive_s
        self._on_tools_changed = on_tools_changed
        self._on_listed = on_listed
        self.over = asyncio.Event()
        """Set when the connection accepts no new uses."""
        self.resource_listeners: set[Callable[[str], None]] = set()
        """Called with the URI of each resource that a legacy server reports as updated."""
        self._loop = asyncio.get_running_loop()
        self._settled = asyncio.Event()
        self._stopping = asyncio.Event()
        self._dead = asyncio.Event()
        self._death: TransportFault = BROKEN
        self._failure: McpFailure | None = None
        self._session: ServerSession | None = None
        self._pace: Pace | None = None
        self._begun_at = self._loop.time()
        self._uses = 0
        self._is_retired = False
        self._last_used = self._loop.time()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._owner = asyncio.create_task(self._own(), name="mcp-connection")

    @property
    def is_usable(self) -> bool:
        """Whether the connection accepts new uses: it is open or opening."""
        return (
            not self._is_retired
            and not self._stopping.is_set()
            and not self._dead.is_set()
            and self._failure is None
            and not (self._session is not None and self._session.is_over)
        )

    @property
    def is_idle(self) -> bool:
        """Whether the connection is open and unused."""
        return self.is_usable and self._session is not None and not self._uses

    @property
    def open_session(self) -> ServerSession | None:
        """The session, without waiting; None before the connection is open."""
        return self._session

    @property
    def last_used(self) -> float:
        """End of the last use, in event loop time."""
        return self._last_used

    def enter(self) -> None:
        self._uses += 1

    def leave(self) -> None:
        self._uses -= 1
        self._last_used = self._loop.time()
        if self._uses:
            return
        if self._is_retired:
            self.stop()
        elif self._idle_timer is None and self.is_usable:
            self._idle_timer = self._loop.call_later(self._idle_timeout_s, self._end_if_idle)

    async def session(self, deadline: float) -> ServerSession:
        """Wait until the connection is open. Raises McpFailure NOT_CONNECTED, also after
        `deadline`; BUSY if the server was not reached by then, since it waited for its turn."""
        if self._session is None and not self._settled.is_set():
            try:
                async with asyncio.timeout_at(deadline):
                    await self._settled.wait()
            except TimeoutError:
                raise self._unanswered() from None
        if self._session is None:
            failure = self._failure or connect_failure("The connection was closed.")
            again = McpFailure(failure.kind, failure.detail, stderr=failure.stderr, for_model=failure.for_model)
            again.retry_after_s = failure.retry_after_s
            raise again
        return self._session

    def retire(self) -> None:
        """Accept no new uses; end when the current ones have ended."""
        self._is_retired = True
        self.over.set()
        if not self._uses:
            self.stop()

    def stop(self) -> None:
        """End the connection now; uses in progress fail."""
        self._stopping.set()
        self.over.set()
        if not self._settled.is_set():
            self._owner.cancel()

    async def closed(self, timeout_s: float) -> bool:
        """Wait for the end after `stop`, and cancel if it takes too long; False if it has not
        ended."""
        done, _ = await asyncio.wait([self._owner], timeout=timeout_s)
        if not done:
            self._owner.cancel()
            done, _ = await asyncio.wait([self._owner], timeout=timeout_s)
        return bool(done)

    def _end_if_idle(self) -> None:
        self._idle_timer = None
        if self._uses:
            return
        left = self._last_used + self._idle_timeout_s - self._loop.time()
        if left <= 0:
            self.stop()
        else:
            self._idle_timer = self._loop.call_later(left, self._end_if_idle)

    async def _own(self) -> None:
        try:
            async with contextlib.AsyncExitStack() as stack:
                try:
                    async with asyncio.timeout(self._connect_timeout_s):
                        session, dispatcher = await self._connect(stack)
                except Exception as exc:  # noqa: BLE001 (any error is the reason for the missing connection)
                    self._fail(exc)
                    return
                dispatcher.pace.connected()
                self._session = session
                self._settled.set()
                self._events.connected(session.facts)
                await self._first_of(self._stopping, dispatcher.ended, self._dead)
                self.over.set()
                if self._dead.is_set():
                    self._events.lost(self._death.detail, needs_auth=self._death.needs_auth)
                elif dispatcher.ended.is_set():
                    # It broke, although a call that noticed it may have requested the end since.
                    self._events.lost(self._transport.describe_end() or "The connection was lost.")
                await session.drain(_DRAIN_S)
        except Exception:
            # The events were sent before; only the SDK's clean-up remains, which may raise a group.
            logger.debug("closing an MCP connection", exc_info=True)
        finally:
            self._stopping.set()
            self.over.set()
            self._settled.set()
            if self._idle_timer is not None:
                self._idle_timer.cancel()
            self._events.ended()

    async def _first_of(self, *events: asyncio.Event) -> None:
        waits = [asyncio.create_task(event.wait()) for event in events]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _connect(self, stack: contextlib.AsyncExitStack) -> tuple[ServerSession, ObservedDispatcher]:
        reader, writer = await stack.enter_async_context(self._transport)
        self._pace, self._begun_at = reader.pace, self._loop.time()
        dispatcher = ObservedDispatcher(reader, writer, is_private=self._is_private)
        asked_calls = AskedCalls()
        client = ClientSession(
            dispatcher=dispatcher,
            client_info=self._client,
            extensions=CAPABILITIES["extensions"],
            message_handler=self._on_message,
            elicitation_callback=asked_calls.answer if ClientRequestKind.ELICITATION in self._asks else None,
            sampling_callback=asked_calls.sample if ClientRequestKind.SAMPLING in self._asks else None,
            list_roots_callback=asked_calls.roots if ClientRequestKind.ROOTS in self._asks else None,
        )
        await stack.enter_async_context(client)
        try:
            await self._negotiate(client)
        except MCPError as exc:
            # A broken pipe is noticed before the end of the process, which has the reason.
            if is_closed(exc):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_EXIT_REASON_S):
                        await dispatcher.ended.wait()
            raise
        session = ServerSession(
            session=client,
            dispatcher=dispatcher,
            transport=self._transport,
            client=self._client,
            asked_calls=asked_calls,
            lists=self._lists,
        )
        is_modern = session.facts.protocol_version in MODERN_PROTOCOL_VERSIONS
        # Listens without subscribers too: a change invalidates the tool definitions of this
        # connection.
        if session.facts.announces and is_modern:
            listener = asyncio.create_task(self._listen(client, session.facts.announces), name="mcp-listen")
            stack.push_async_callback(_ended, listener)
        if self._keep_alive_s is not None and not is_modern:
            pinger = asyncio.create_task(self._keep_alive(session, self._keep_alive_s), name="mcp-keep-alive")
            stack.push_async_callback(_ended, pinger)
        return session, dispatcher

    async def _on_message(self, message: IncomingMessage) -> None:
        if (kind := changed_list(message)) is not None:
            self._changed(kind)
        elif isinstance(message, ResourceUpdatedNotification):
            for tell in list(self.resource_listeners):
                tell(message.params.uri)

    def _changed(self, kind: ListKind) -> None:
        if kind is not ListKind.TOOLS:
            if self._on_listed is not None:
                self._on_listed(kind)
            return
        if self._session is not None:
            self._session.definitions_changed()
        if self._on_tools_changed is not None:
            self._on_tools_changed()

    async def _listen(self, client: ClientSession, kinds: frozenset[ListKind]) -> None:
        """Wait for list changes, which a modern server sends to subscribers.

        - A broken stream is opened again; all lists count as changed, because a change may have
          been missed.
        - If the server cannot be reached for that, the connection is lost.
        """
        pause_s, is_first = _FIRST_LISTEN_PAUSE_S, True
        while True:
            try:
                async with listening(client, kinds) as changes:
                    for kind in () if is_first else kinds:
                        self._changed(kind)
                    is_first = False
                    async for kind in changes:
                        pause_s = _FIRST_LISTEN_PAUSE_S
                        self._changed(kind)
                return
            except SubscriptionLost:
                logger.debug("the stream of list changes broke; opening it again", exc_info=True)
            except (MCPError, ListenNotSupportedError) as exc:
                fault = fault_in(exc) if isinstance(exc, MCPError) else None
                if not is_first and fault is not None and fault.over:
                    self._lose(fault)
                logger.debug("the stream of list changes ended", exc_info=True)
                return
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_LISTEN_PAUSE_S)

    async def _keep_alive(self, session: ServerSession, interval_s: float) -> None:
        """Ping the server while the connection is unused (MCP utilities/ping); a call in progress
        would show a loss."""
        while True:
            await asyncio.sleep(interval_s)
            if self._uses or self._loop.time() - self._last_used < interval_s:
                continue
            fault = await session.ping(self._loop.time() + min(interval_s, _PING_TIMEOUT_S))
            if fault is not None and not self._uses:
                self._lose(fault)
                return

    def _lose(self, fault: TransportFault) -> None:
        self._death = fault
        self._dead.set()

    def _fail(self, error: Exception) -> None:
        if self._pace is not None:
            self._pace.connection_failed(self._begun_at)
        fault = fault_in(error) if isinstance(error, MCPError) else None
        if isinstance(error, TransportFailedError):
            fault = error.fault
        self._failure = self._failure_of(error, fault.detail if fault else None)
        if fault is not None and self._failure.detail == fault.detail:
            self._failure.for_model = fault.for_model
        if fault is not None and fault.needs_auth:
            self._failure.kind = McpFailureKind.NEEDS_AUTH
        self._settled.set()
        self._events.failed(self._failure, needs_auth=bool(fault and fault.needs_auth))

    def _failure_of(self, error: Exception, fault_detail: str | None) -> McpFailure:
        stderr = self._transport.stderr()
        if isinstance(error, TimeoutError):
            return self._unanswered()
        if (end := self._transport.describe_end()) is not None:
            return connect_failure(end, stderr)
        match error:
            case _ if fault_detail is not None:
                detail = fault_detail
            case MCPError():
                detail = f"The server refused the connection (MCP error {error.code})."
            case RuntimeError():
                detail = "The server supports no MCP version that Dragoman supports."
            case ValidationError():
                detail = "The server's answer to the handshake is not valid MCP."
            case OSError():
                detail = "The server's process cannot be started."
            case _:
                logger.warning("connecting to an MCP server failed unexpectedly", exc_info=error)
                detail = "The connection cannot be opened."
        return connect_failure(detail, stderr)

    def _unanswered(self) -> McpFailure:
        if (turn_in_s := self._transport.turn_in_s) > 0:
            return McpFailure(McpFailureKind.BUSY, _NOT_REACHED, retry_after_s=turn_in_s)
        noise = self._transport.describe_noise()
        detail = "The server did not answer in time." + (f" {noise}" if noise else "")
        return connect_failure(detail, self._transport.stderr())


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
