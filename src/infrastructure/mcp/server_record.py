"""What this process remembers of a server between its connections: state, places, the pause after a failure."""

import asyncio
from datetime import datetime

from application.mcp.ports import McpFailure, ServerState, ServerStatus
from application.system.ports import Clock
from domain.mcp.server import McpServer

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0


class ServerRecord:
    """One version of one server. `places` bounds its calls in flight, over all its connections."""

    def __init__(self, server: McpServer, clock: Clock) -> None:
        self.server = server
        self.places = asyncio.Semaphore(server.config.max_concurrency)
        self.tool_count: int | None = None
        self._clock = clock
        self._connecting = 0
        self._connected = 0
        self._protocol_version: str | None = None
        self._trouble: ServerState | None = None
        self._last_error: str | None = None
        self._failures = 0
        self._not_before = 0.0
        self._state = ServerState.DISCONNECTED
        self._since: datetime = clock.now()

    @property
    def status(self) -> ServerStatus:
        """The state now; `protocol_version` only while connected."""
        is_connected = self._state is ServerState.CONNECTED
        return ServerStatus(
            state=self._state,
            since=self._since,
            last_error=self._last_error,
            protocol_version=self._protocol_version if is_connected else None,
            tool_count=self.tool_count,
        )

    @property
    def pause_s(self) -> float:
        """How long to wait before the next attempt to connect, so that a broken server is not started over and over."""
        return max(0.0, self._not_before - self._clock.monotonic())

    def forgive(self) -> None:
        """The next attempt to connect is made without a pause."""
        self._not_before = 0.0

    def connecting(self) -> None:
        """A connection is being opened."""
        self._connecting += 1
        self._settle()

    def connected(self, protocol_version: str) -> None:
        """A connection was opened."""
        self._connecting -= 1
        self._connected += 1
        self._protocol_version = protocol_version
        self._trouble, self._last_error = None, None
        self._failures, self._not_before = 0, 0.0
        self._settle()

    def failed(self, failure: McpFailure, *, needs_auth: bool) -> None:
        """A connection could not be opened."""
        self._connecting -= 1
        self._trouble = ServerState.NEEDS_AUTH if needs_auth else ServerState.ERROR
        self._last_error = failure.detail
        pause_s = min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures += 1
        self._not_before = self._clock.monotonic() + pause_s
        self._settle()

    def abandoned(self) -> None:
        """A connection was given up before it was open."""
        self._connecting -= 1
        self._settle()

    def disconnected(self, trouble: str | None = None) -> None:
        """An open connection ended; `trouble` says why if nobody asked it to."""
        self._connected -= 1
        if trouble is not None:
            self._trouble, self._last_error = ServerState.UNHEALTHY, trouble
        self._settle()

    def troubled(self, detail: str, *, needs_auth: bool) -> None:
        """An open connection turned out to be of no use; the next one that opens makes it good."""
        self._trouble = ServerState.NEEDS_AUTH if needs_auth else ServerState.UNHEALTHY
        self._last_error = detail

    def _settle(self) -> None:
        if self._connected:
            state = ServerState.CONNECTED
        elif self._connecting:
            state = ServerState.CONNECTING
        else:
            state = self._trouble or ServerState.DISCONNECTED
        if state is not self._state:
            self._state, self._since = state, self._clock.now()
