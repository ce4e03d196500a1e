"""MCP connections loaded on first use or warmed beside the event loop: importing the SDK takes most
of a second."""

from collections.abc import Coroutine, Mapping
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
from application.system.lazy import LazyClosable
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer
from infrastructure.mcp.connections.resource_watches import FollowingConnections, WantedResources


class ClosableConnections(McpConnections, McpContents, FollowingConnections, Protocol):
    """Connections that can be closed."""

    def accounts_changed(self, organization_id: OrganizationId | None) -> None:
        """People of the organization may have replaced or deleted secrets; None is any
        organization."""
        ...

    async def close(self) -> None:
        """End every connection, in bounded time. Never raises."""
        ...


class LazyMcpConnections(LazyClosable[ClosableConnections]):
    """`McpConnections` and `McpContents`, loaded on first use."""

    def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> Coroutine[None, None, McpReply]:
        if self.loaded is None:
            return self._call_once_loaded(server, scope, call, on_progress)
        return self.loaded.call_tool(server, scope, call, on_progress)

    async def _call_once_loaded(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None
    ) -> McpReply:
        return await (await self.warm()).call_tool(server, scope, call, on_progress)

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        return await (await self.warm()).ask(server, scope, request)

    async def follow_resources(self, server: McpServer, scope: ConnectionScope, wanted: WantedResources) -> None:
        await (await self.warm()).follow_resources(server, scope, wanted)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        return await (await self.warm()).discover(server, scope, timeout_s=timeout_s)

    async def release(self, scope: ConnectionScope) -> None:
        if self.loaded is not None:
            await self.loaded.release(scope)

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        if self.loaded is not None:
            self.loaded.forgive(organization_id, server_id)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        if self.loaded is not None:
            await self.loaded.forget(organization_id, server_id)

    def accounts_changed(self, organization_id: OrganizationId | None) -> None:
        if self.loaded is not None:
            self.loaded.accounts_changed(organization_id)

    def status(self, server: McpServer) -> ServerStatus:
        """DISCONNECTED before the first use."""
        if self.loaded is not None:
            return self.loaded.status(server)
        state = ServerState.DISCONNECTED if server.config.enabled else ServerState.DISABLED
        return ServerStatus(state=state, since=server.updated_at)

    def logs(self, server: McpServer) -> str:
        return "" if self.loaded is None else self.loaded.logs(server)
