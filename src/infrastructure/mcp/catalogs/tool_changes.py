"""News that a server's tools changed, passed on one at a time however fast they come."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

ToolsChanged = Callable[[McpServer], Awaitable[None]]


class ToolChanges:
    """For one connection. What comes while the listener is busy is one more call to it, however much it is."""

    def __init__(self, server: McpServer, on_tools_changed: ToolsChanged) -> None:
        self._server = server
        self._on_tools_changed = on_tools_changed
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    def announce(self) -> None:
        """The tools changed."""
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell(), name="mcp-tools-changed")

    def close(self) -> None:
        """The connection is over: nothing more is passed on."""
        self._is_due = False
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                await self._on_tools_changed(self._server)
            except Exception:
                logger.exception("refreshing a server's tools failed", extra={"server_id": self._server.id})
