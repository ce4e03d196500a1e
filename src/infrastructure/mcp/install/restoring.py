"""Installs what is recorded with a server where this machine lacks its files: at the first start of the
server here."""

import asyncio
import logging
from typing import Protocol

from application.mcp.ports import McpFailure, McpFailureKind, McpInstallFailure
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

WAIT_S = 25.0
"""Longest wait of a connection; the installation continues without it."""
_UNDER_WAY = "The MCP server is being installed on this machine."


class Restore(Protocol):
    async def __call__(self, server: McpServer, /) -> bool:
        """Install what is recorded. False while another process does. Raises McpInstallFailure."""


class RestoredInstallations:
    """Rules:
    - One attempt at a time for an installation, `parallel` in all.
    - A connection waits for a while; a later one finds the installation complete.
    """

    def __init__(self, restore: Restore, *, parallel: int = 2, wait_s: float = WAIT_S) -> None:
        self._restore = restore
        self._places = asyncio.Semaphore(parallel)
        self._wait_s = wait_s
        self._under_way: dict[str, asyncio.Task[bool]] = {}

    async def ready(self, server: McpServer) -> None:
        """Return once the files of the installed server are here. Raises McpFailure NOT_CONNECTED while
        they are being installed, NOT_INSTALLED if they cannot be."""
        try:
            is_done = await asyncio.wait_for(asyncio.shield(self._attempt(server)), self._wait_s)
        except TimeoutError:
            is_done = False
        except McpInstallFailure as failure:
            detail = f"MCP server not installed on this machine. {failure.detail}"
            raise McpFailure(McpFailureKind.NOT_INSTALLED, detail) from failure
        if not is_done:
            raise McpFailure(McpFailureKind.NOT_CONNECTED, _UNDER_WAY)

    async def close(self) -> None:
        """Stop what is under way; nothing of it is left."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _attempt(self, server: McpServer) -> "asyncio.Task[bool]":
        assert server.installation is not None  # asked for installed servers only
        location = server.installation.location
        task = self._under_way.get(location)
        if task is None:
            task = self._under_way[location] = asyncio.create_task(self._restored(server), name="mcp-restore")
            task.add_done_callback(lambda done: self._over(server, location, done))
        return task

    async def _restored(self, server: McpServer) -> bool:
        async with self._places:
            return await self._restore(server)

    def _over(self, server: McpServer, location: str, task: "asyncio.Task[bool]") -> None:
        del self._under_way[location]
        ids = {"organization_id": server.organization_id, "server_id": server.id, "server": server.config.slug}
        if task.cancelled():
            return
        failure = task.exception()  # connections that waited too long do not read it
        if isinstance(failure, McpInstallFailure):
            reason = {"failure": failure.kind.value, "detail": failure.detail}
            logger.warning("MCP server not installed on this machine", extra={**ids, **reason})
        elif failure is not None:
            logger.error("installing an MCP server on this machine failed", extra=ids, exc_info=failure)
        elif task.result():
            logger.info("MCP server installed on this machine", extra=ids)
