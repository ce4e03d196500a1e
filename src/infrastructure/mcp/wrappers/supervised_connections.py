"""Reconnects servers whose shared connection was lost, and lists changed tools again."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from application.mcp.contents import ContentRequest, McpContents
from application.mcp.ports import ConnectionScope, McpConnections, McpFailure, McpFailureKind
from application.system.ports import Clock
from domain.ids import McpServerId, OrganizationId
from domain.mcp.backoff import Backoff
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.resource_watches import WantedResources
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections

logger = logging.getLogger(__name__)

STABLE_S = 60.0
"""A connection that lasts this long resets the backoff."""


class OwnedConnections(Protocol):
    """Needs of supervision from the innermost connections, besides the port."""

    async def warm(self) -> object:
        """Load what the first call needs."""
        ...

    async def close(self) -> None:
        """End every connection, in bounded time. Never raises."""
        ...

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """Watch resources. Raises McpFailure."""
        ...


class SupervisedConnections(WrappedConnections):
    """Reconnects one attempt at a time per server, with backoff and full jitter, until the server
    is back, changed or removed.

    - `connections` are the shared connections with their limits.
    - `owned` are the innermost connections; `close` ends them.
    - `relist` connects to a server, lists its tools and stores them. It raises McpFailure.
    """

    def __init__(
        self,
        connections: McpConnections,
        *,
        owned: OwnedConnections,
        relist: Callable[[McpServer], Awaitable[None]],
        clock: Clock,
        contents: McpContents | None = None,
        backoff: Backoff | None = None,
        fraction: Callable[[], float] = random.random,  # chance, not secrecy
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(connections)
        self._owned = owned
        self._relist = relist
        self._clock = clock
        self._contents = contents
        self._backoff = backoff or Backoff()
        self._fraction = fraction
        self._sleep = sleep
        self._tasks: dict[McpServerId, asyncio.Task[None]] = {}
        self._returns: dict[McpServerId, tuple[int, float]] = {}

    @property
    def servers_reconnecting(self) -> int:
        """Number of lost servers with reconnection in progress."""
        return len(self._tasks)

    async def warm(self) -> None:
        await self._owned.warm()

    async def close(self) -> None:
        """Stop reconnecting and end every connection."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._owned.close()

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        if self._contents is None:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "No server is connected for contents.")
        return await self._contents.ask(server, scope, request)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        await self._owned.follow_resources(server, scope, wanted)

    async def tools_changed(self, server: McpServer) -> None:
        """List the tools of the server again. Raises McpFailure."""
        await self._relist(server)

    def lost(self, server: McpServer) -> None:
        """Reconnect after the shared connection of the server was lost."""
        if server.id in self._tasks:
            return
        task = self._tasks[server.id] = asyncio.create_task(self._reconnect(server), name="mcp-reconnect")
        task.add_done_callback(lambda done: self._over(server.id, done))

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        self._returns.pop(server_id, None)
        if (task := self._tasks.pop(server_id, None)) is not None:
            task.cancel()
        await self._connections.forget(organization_id, server_id)

    async def _reconnect(self, server: McpServer) -> None:
        attempt = self._first_attempt(server.id)
        ids = {"organization_id": server.organization_id, "server_id": server.id, "server": server.config.slug}
        logger.warning("MCP server lost; reconnecting", extra=ids)
        least_pause_s = 0.0
        while True:
            await self._sleep(max(self._backoff.pause_s(attempt, self._fraction()), least_pause_s))
            attempt += 1
            try:
                await self._relist(server)
            except McpFailure as failure:
                least_pause_s = failure.retry_after_s or 0.0
                logger.info(
                    "MCP server not reconnected; retrying", extra={**ids, "attempt": attempt, "detail": failure.detail}
                )
            except Exception:
                logger.exception(
                    "reconnecting an MCP server failed unexpectedly; retrying", extra={**ids, "attempt": attempt}
                )
            else:
                self._returns[server.id] = (attempt, self._clock.monotonic())
                logger.info("MCP server reconnected", extra={**ids, "attempt": attempt})
                return

    def _first_attempt(self, server_id: McpServerId) -> int:
        """The backoff continues for a server that was lost again soon after its return."""
        attempts, returned_at = self._returns.pop(server_id, (0, 0.0))
        return attempts if self._clock.monotonic() - returned_at < STABLE_S else 0

    def _over(self, server_id: McpServerId, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(server_id) is task:
            del self._tasks[server_id]
