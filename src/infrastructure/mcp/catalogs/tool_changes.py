"""Tool-change notifications of one connection, delivered one at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

ToolsChanged = Callable[[McpServer], Awaitable[None]]


class ToolChanges:
    """Calls the listener once per change. Changes that arrive while it runs are merged into one
    more call."""

    def __init__(self, server: McpServer, on_tools_changed: ToolsChanged) -> None:
        self._server = server
        self._on_tools_changed = on_tools_changed
        self._is_due = self._is_closed = False
        self._task: asyncio.Task[None] | None = None

    def announce(self) -> None:
        if self._is_closed:
            return
        self._is_due = True
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._tell(), name="mcp-tools-changed")

    def close(self) -> None:
        """Deliver no more, whatever is announced."""
        self._is_due, self._is_closed = False, True
        if self._task is not None:
            self._task.cancel()

    async def _tell(self) -> None:
        while self._is_due:
            self._is_due = False
            try:
                await self._on_tools_changed(self._server)
            except Exception:
                logger.exception("refreshing the tools of a server failed", extra={"server_id": self._server.id})
