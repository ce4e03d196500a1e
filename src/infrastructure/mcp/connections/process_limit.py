"""Limits the MCP servers that an organization has started."""

import asyncio
from collections.abc import Callable, Mapping

from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import OrganizationId
from infrastructure.mcp.connections.connection import McpConnection
from infrastructure.mcp.connections.connection_life import ConnectionLife


class ProcessLimit:
    """At most `max_processes` of the connections in `live` are to servers started by one
    organization. `end` ends an idle connection."""

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
        self._freed, self._is_awaited = asyncio.Event(), False

    async def wait(self, organization_id: OrganizationId, is_needed: Callable[[], bool], deadline: float) -> None:
        """Wait until another process may start, or none `is_needed`; returns without yielding then.
        Ends the connection idle for longest. Raises: McpFailure BUSY at `deadline` (event loop
        time)."""
        while is_needed() and len(started := self._started_by(organization_id)) >= self._max_processes:
            idle = [connection for connection in started if connection.is_idle]
            if idle:
                self._end(min(idle, key=lambda connection: connection.last_used))
            self._is_awaited = True
            try:
                async with asyncio.timeout_at(deadline):
                    await self._freed.wait()
            except TimeoutError as exc:
                detail = f"The organization has {self._max_processes} MCP servers started, which is its limit."
                raise McpFailure(McpFailureKind.BUSY, f"{detail} Nothing was sent.") from exc

    def freed(self) -> None:
        """A connection has ended or become idle: waiting starts check again."""
        if self._is_awaited:
            self._is_awaited = False
            self._freed.set()
            self._freed = asyncio.Event()

    def _started_by(self, organization_id: OrganizationId) -> list[McpConnection]:
        return [
            connection
            for connection, life in self._live.items()
            if life.record.server.organization_id == organization_id and not life.record.server.config.kind.is_remote
        ]
