"""How many MCP servers an organization has started, and who waits for room for one more."""

import asyncio
from collections.abc import Callable, Mapping

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import OrganizationId
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_life import ConnectionLife


class ProcessRoom:
    """At most `max_processes` of the connections in `live` are to servers that one organization has started. `end` lets one
    go that is idle."""

    def __init__(
        self,
        max_processes: int,
        live: Mapping[McpConnection, ConnectionLife],
        *,
        end: Callable[[McpConnection], None],
    ) -> None:
        self._max_processes = max_processes
        self._live = live
        self._end = end
        self._made, self._is_awaited = asyncio.Event(), False

    async def wait(self, organization_id: OrganizationId, is_needed: Callable[[], bool], deadline: float) -> None:
        """Returns without yielding once there is room for another process, which the one idle for longest makes, or none
        `is_needed` any more. Raises McpFailure BUSY if that is not so by `deadline`, of the event loop's clock."""
        while is_needed() and len(started := self._started_by(organization_id)) >= self._max_processes:
            idle = [connection for connection in started if connection.is_idle]
            if idle:
                self._end(min(idle, key=lambda connection: connection.last_used))
            self._is_awaited = True
            try:
                async with asyncio.timeout_at(deadline):
                    await self._made.wait()
            except TimeoutError as exc:
                detail = f"The organization has {self._max_processes} MCP servers started, which is all it may have."
                raise McpFailure(McpFailureKind.BUSY, f"{detail} Nothing was sent.") from exc

    def made(self) -> None:
        """A connection has ended or become idle: those who wait to start a server look again."""
        if self._is_awaited:
            self._is_awaited = False
            self._made.set()
            self._made = asyncio.Event()

    def _started_by(self, organization_id: OrganizationId) -> list[McpConnection]:
        return [
            connection
            for connection, life in self._live.items()
            if life.record.server.organization_id == organization_id and not life.record.server.config.kind.is_remote
        ]
