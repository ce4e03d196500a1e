"""Bulkhead for contents: limits the concurrent content requests of each server."""

from collections.abc import Mapping

from application.mcp.contents import ContentRequest, McpContents
from application.mcp.ports import ConnectionScope
from domain.mcp.server import McpServer
from infrastructure.mcp.wrappers.bounded_connections import MAX_WAITING, Bulkheads


class BoundedContents:
    """Wraps `McpContents`: at most `max_concurrency` requests per server; others wait within their
    timeout."""

    def __init__(self, contents: McpContents, *, max_waiting: int = MAX_WAITING) -> None:
        self._contents = contents
        self._places = Bulkheads(max_waiting)

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """Raises: McpFailure BUSY, besides those of the port."""
        busy = "The server has reached its limit of concurrent requests. Nothing was sent."
        async with self._places.held(server.id, server.config.max_concurrency, request.timeout_s, busy):
            return await self._contents.ask(server, scope, request)
