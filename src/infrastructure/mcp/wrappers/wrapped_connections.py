"""Base of the wrappers around MCP connections."""

from collections.abc import Coroutine

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpReply,
    ProgressCallback,
    ServerStatus,
)
from domain.ids import McpServerId, OrganizationId
from domain.mcp.catalog import McpCatalog
from domain.mcp.server import McpServer


class WrappedConnections:
    """`McpConnections` that delegate every method; subclasses override some."""

    def __init__(self, connections: McpConnections) -> None:
        self._connections = connections

    def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> Coroutine[None, None, McpReply]:
        """Returns the inner coroutine instead of awaiting it: a call passes many wrappers."""
        return self._connections.call_tool(server, scope, call, on_progress)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        return await self._connections.discover(server, scope, timeout_s=timeout_s)

    async def release(self, scope: ConnectionScope) -> None:
        await self._connections.release(scope)

    def status(self, server: McpServer) -> ServerStatus:
        return self._connections.status(server)

    def logs(self, server: McpServer) -> str:
        return self._connections.logs(server)

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        self._connections.forgive(organization_id, server_id)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        await self._connections.forget(organization_id, server_id)
