"""The MCP connections, loaded when first needed or warmed beside the event loop: importing the SDK takes most of a second
that neither a start nor a run without MCP tools should wait for."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from application.mcp.contents import ContentRequest, McpContents
from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpReply,
    ProgressCallback,
    ServerState,
    ServerStatus,
)
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.resource_watches import FollowingConnections, WantedResources


class ClosableConnections(McpConnections, McpContents, FollowingConnections, Protocol):
    """Connections with an end."""

    async def close(self) -> None:
        """End every connection, in bounded time. Never raises."""
        ...


class LazyMcpConnections:
    """`McpConnections` and `McpContents` over what `load` makes; `load` imports and builds, does no I/O, and is called in a thread."""

    def __init__(self, load: Callable[[], ClosableConnections]) -> None:
        self._load = load
        self._loaded: ClosableConnections | None = None
        self._loading = asyncio.Lock()

    async def warm(self) -> None:
        """Load now."""
        await self._connections()

    async def close(self) -> None:
        """End every connection."""
        if self._loaded is not None:
            await self._loaded.close()

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """As the port says."""
        connections = self._loaded or await self._connections()
        return await connections.call_tool(server, scope, call, on_progress)

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """As `McpContents` has it."""
        return await (await self._connections()).ask(server, scope, request)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        """As `FollowingConnections` has it."""
        await (await self._connections()).follow_resources(server, scope, wanted)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """As the port says."""
        return await (await self._connections()).discover(server, scope, timeout_s=timeout_s)

    async def release(self, scope: ConnectionScope) -> None:
        """As the port says; nothing to release before the first call."""
        if self._loaded is not None:
            await self._loaded.release(scope)

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """As the port says; nothing to forgive before the first call."""
        if self._loaded is not None:
            self._loaded.forgive(organization_id, server_id)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """As the port says; nothing to forget before the first call."""
        if self._loaded is not None:
            await self._loaded.forget(organization_id, server_id)

    def status(self, server: McpServer) -> ServerStatus:
        """As the port says."""
        if self._loaded is not None:
            return self._loaded.status(server)
        state = ServerState.DISCONNECTED if server.config.enabled else ServerState.DISABLED
        return ServerStatus(state=state, since=server.updated_at)

    def logs(self, server: McpServer) -> str:
        """As the port says."""
        return "" if self._loaded is None else self._loaded.logs(server)

    async def _connections(self) -> ClosableConnections:
        if self._loaded is None:
            async with self._loading:
                if self._loaded is None:
                    self._loaded = await asyncio.to_thread(self._load)
        return self._loaded
