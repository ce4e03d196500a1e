"""State of a server in this process, across its connections: status, errors, the pause after a
failure."""

from collections.abc import Callable
from datetime import datetime

from application.mcp.ports import McpFailure, McpFailureKind, ServerState, ServerStatus
from application.system.ports import Clock
from domain.mcp.server import McpServer
from infrastructure.mcp.catalogs.tool_lists import ToolLists

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_LOST = frozenset({ServerState.UNHEALTHY, ServerState.ERROR})
_TROUBLES = _LOST | {ServerState.NEEDS_AUTH}

LOGGED_FAILURES = frozenset(
    {
        McpFailureKind.TIMEOUT,
        McpFailureKind.NOT_CONNECTED,
        McpFailureKind.CONNECTION_LOST,
        McpFailureKind.TOO_LARGE,
        McpFailureKind.INVALID_REPLY,
        McpFailureKind.NEEDS_AUTH,
    }
)
"""Failures noted in the server's log, because the model reads less and users may not see the log of
the process."""

StatusChanged = Callable[[McpServer, ServerStatus], None]
"""Called when the status of a server in this process changes."""


class ServerRecord:
    """The record of one version of a server. `on_lost` is called when its last connection is lost,
    or cannot be reopened."""

    def __init__(
        self,
        server: McpServer,
        clock: Clock,
        on_lost: Callable[[McpServer], None] | None = None,
        on_status: StatusChanged | None = None,
    ) -> None:
        self.server = server
        self.lists = ToolLists(server.config.declared_tools)
        self._tool_count: int | None = None
        self._clock = clock
        self._on_lost = on_lost
        self._on_status = on_status
        self._told: ServerStatus | None = None
        self._was_connected = False
        self._given_up: str | None = None
        self._connecting = 0
        self._connected = 0
        self._protocol_version: str | None = None
        self._trouble: ServerState | None = None
        self._trouble_since: datetime | None = None
        self._last_error: str | None = None
        self._failures = 0
        self._not_before = 0.0
        self._state = ServerState.DISCONNECTED
        self._since: datetime = clock.now()

    @property
    def status(self) -> ServerStatus:
        """The current status; `protocol_version` only while connected."""
        is_connected = self._state is ServerState.CONNECTED
        return ServerStatus(
            state=self._state,
            since=self._since if self._trouble_since is None or self._state not in _TROUBLES else self._trouble_since,
            last_error=self._given_up or self._last_error,
            protocol_version=self._protocol_version if is_connected else None,
            tool_count=self._tool_count,
        )

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt to connect, so that a broken server is not started over
        and over."""
        return max(0.0, self._not_before - self._clock.monotonic())

    def hurry(self) -> None:
        """Drop the pause before the next attempt to connect."""
        self._not_before = 0.0

    def listed(self, tool_count: int) -> None:
        self._tool_count = tool_count
        self._tell()

    def forgotten(self) -> None:
        """Report the server as disconnected, and report no further changes and no loss."""
        on_status, self._on_status, self._on_lost = self._on_status, None, None
        if on_status is not None:
            on_status(self.server, ServerStatus(state=ServerState.DISCONNECTED, since=self._clock.now()))

    def forgive(self) -> None:
        """Drop the failures so far."""
        self.hurry()
        self._given_up = None
        self._settle()

    def connecting(self) -> None:
        self._connecting += 1
        self._settle()

    def connected(self, protocol_version: str) -> None:
        self._connecting -= 1
        self._connected += 1
        self._protocol_version = protocol_version
        self._trouble, self._trouble_since, self._last_error, self._given_up = None, None, None, None
        self._was_connected = True
        self._failures, self._not_before = 0, 0.0
        self._settle()

    def failed(self, failure: McpFailure, *, needs_auth: bool) -> None:
        self._connecting -= 1
        self._in_trouble(ServerState.NEEDS_AUTH if needs_auth else ServerState.ERROR)
        self._last_error = failure.detail
        pause_s = min(_FIRST_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._failures += 1
        self._not_before = self._clock.monotonic() + pause_s
        self._settle()

    def abandoned(self) -> None:
        """A connection was given up before it was open."""
        self._connecting -= 1
        self._settle()

    def disconnected(self, trouble: str | None = None, *, needs_auth: bool = False) -> None:
        """An open connection ended; `trouble` is the reason if it was not requested."""
        self._connected -= 1
        if trouble is not None:
            self.troubled(trouble, needs_auth=needs_auth)
        self._settle()

    def troubled(self, detail: str, *, needs_auth: bool) -> None:
        """An open connection proved unusable; the next one that opens resets the state."""
        self._in_trouble(ServerState.NEEDS_AUTH if needs_auth else ServerState.UNHEALTHY)
        self._last_error = detail
        self._settle()

    def _in_trouble(self, trouble: ServerState) -> None:
        """Attempts to connect in between do not move the beginning of the trouble."""
        self._trouble = trouble
        self._trouble_since = self._trouble_since or self._clock.now()

    def given_up(self, cool_down_s: float) -> None:
        """The server is not started again until the cool-down ends."""
        minutes = max(1, round(cool_down_s / 60))
        self._given_up = (
            f"{self.status.last_error} It crashed too often and is not started again for {minutes} min; "
            "connecting, refreshing or testing it starts it at once."
        )
        self._settle()

    def _settle(self) -> None:
        if self._connected and self._trouble is ServerState.NEEDS_AUTH:
            state = ServerState.NEEDS_AUTH  # requests on the open connection are refused; it ends with its calls
        elif self._connected:
            state = ServerState.CONNECTED
        elif self._connecting:
            state = ServerState.CONNECTING
        elif self._given_up is not None:
            state = ServerState.ERROR
        else:
            state = self._trouble or ServerState.DISCONNECTED
        if state is not self._state:
            self._state, self._since = state, self._clock.now()
        self._tell()
        if self._connected or self._connecting:
            return
        was_connected, self._was_connected = self._was_connected, False
        if was_connected and state in _LOST and self._on_lost is not None:
            self._on_lost(self.server)

    def _tell(self) -> None:
        if self._on_status is None:
            return
        status = self.status
        if status != self._told:
            self._told = status
            self._on_status(self.server, status)
