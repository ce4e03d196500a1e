"""Counts MCP servers by state, and open circuit breakers."""

from application.mcp.ports import ServerState, ServerStatus
from domain.ids import McpServerId
from domain.mcp.breaker import BreakerState
from domain.mcp.server import McpServer
from infrastructure.metrics.instruments import Instruments


class ServerStates:
    """Gets every change. Disconnected servers without an error and closed breakers are not
    counted."""

    def __init__(self, instruments: Instruments) -> None:
        self._servers = instruments.servers
        self._breakers = instruments.breakers
        self._state_of: dict[McpServerId, ServerState] = {}
        self._breaker_of: dict[McpServerId, BreakerState] = {}
        for state in (ServerState.CONNECTED, ServerState.UNHEALTHY, ServerState.ERROR):
            self._servers.labels(state.value).set(0)
        self._breakers.labels(BreakerState.OPEN.value).set(0)

    def changed(self, server: McpServer, status: ServerStatus) -> None:
        before = self._state_of.pop(server.id, None)
        if before is not None:
            self._servers.labels(before.value).dec()
        if status.state is not ServerState.DISCONNECTED or status.last_error is not None:
            self._state_of[server.id] = status.state
            self._servers.labels(status.state.value).inc()

    def breaker_changed(self, server_id: McpServerId, state: BreakerState) -> None:
        before = self._breaker_of.pop(server_id, None)
        if before is not None:
            self._breakers.labels(before.value).dec()
        if state is not BreakerState.CLOSED:
            self._breaker_of[server_id] = state
            self._breakers.labels(state.value).inc()
