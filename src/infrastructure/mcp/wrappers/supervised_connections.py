"""Brings back what was lost, and keeps catalogs true: servers whose shared connection was lost are connected again, and a
server whose tools changed is listed anew.
"""

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
"""How long a connection must hold before the next loss starts with the shortest pause again."""


class OwnedConnections(Protocol):
    """What the connections at the bottom need besides the port."""

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
    """One attempt at a time for each server, each after a pause with full jitter, until it is back, changed or removed.

    `connections` are those that everybody uses, with their limits; `owned` is what is below those and ends with this;
    `relist` connects to a server, lists its tools and keeps them. It raises McpFailure.
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
    def servers_awaited(self) -> int:
        """How many servers are lost and tried again."""
        return len(self._tasks)

    async def warm(self) -> None:
        """Load what the first call needs."""
        await self._owned.warm()

    async def close(self) -> None:
        """No more attempts; ends every connection."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._owned.close()

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """As `McpContents` has it; without any, no server is connected."""
        if self._contents is None:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, "Contents of servers are not asked for here.")
        return await self._contents.ask(server, scope, request)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """As `FollowingConnections` has it."""
        await self._owned.follow_resources(server, scope, wanted)

    async def tools_changed(self, server: McpServer) -> None:
        """The server said that its tools changed. Raises McpFailure."""
        await self._relist(server)

    def lost(self, server: McpServer) -> None:
        """The connection that the server's organization shares is lost."""
        if server.id in self._tasks:
            return
        task = self._tasks[server.id] = asyncio.create_task(self._bring_back(server), name="mcp-reconnect")
        task.add_done_callback(lambda done: self._over(server.id, done))

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """As the port says."""
        self._returns.pop(server_id, None)
        if (task := self._tasks.pop(server_id, None)) is not None:
            task.cancel()
        await self._connections.forget(organization_id, server_id)

    async def _bring_back(self, server: McpServer) -> None:
        attempt = self._first_attempt(server.id)
        ids = {"organization_id": server.organization_id, "server_id": server.id, "server": server.config.slug}
        logger.warning("an MCP server was lost", extra=ids)
        least_pause_s = 0.0
        while True:
            await self._sleep(max(self._backoff.pause_s(attempt, self._fraction()), least_pause_s))
            attempt += 1
            try:
                await self._relist(server)
            except McpFailure as failure:
                least_pause_s = failure.retry_after_s or 0.0
                logger.info("an MCP server is still lost", extra={**ids, "attempt": attempt, "detail": failure.detail})
            except Exception:
                logger.exception("a lost MCP server was not brought back", extra={**ids, "attempt": attempt})
            else:
                self._returns[server.id] = (attempt, self._clock.monotonic())
                logger.info("an MCP server is back", extra={**ids, "attempt": attempt})
                return

    def _first_attempt(self, server_id: McpServerId) -> int:
        """Where the pauses go on: a server that is back only to be lost again has not earned a short one."""
        attempts, returned_at = self._returns.pop(server_id, (0, 0.0))
        return attempts if self._clock.monotonic() - returned_at < STABLE_S else 0

    def _over(self, server_id: McpServerId, task: "asyncio.Task[None]") -> None:
        if self._tasks.get(server_id) is task:
            del self._tasks[server_id]
