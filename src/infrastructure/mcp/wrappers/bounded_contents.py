"""Contents of servers behind a bulkhead: as many requests at one time as the server may have calls."""

from collections.abc import Mapping

from application.mcp.contents import ContentRequest, McpContents
from application.mcp.ports import ConnectionScope
from domain.mcp.server import McpServer
from infrastructure.mcp.wrappers.bounded_connections import MAX_WAITING, Places


class BoundedContents:
    """`McpContents` that are others, within `max_concurrency` of each server; others wait their turn within their time."""

    def __init__(self, contents: McpContents, *, max_waiting: int = MAX_WAITING) -> None:
        self._contents = contents
        self._places = Places(max_waiting)

    async def ask(self, server: McpServer, scope: ConnectionScope, request: ContentRequest) -> Mapping[str, object]:
        """As the port says. Raises McpFailure BUSY, too."""
        busy = "The server has as many requests under way as it may have. Nothing was sent."
        async with self._places.taken(server.id, server.config.max_concurrency, request.timeout_s, busy):
            return await self._contents.ask(server, scope, request)
