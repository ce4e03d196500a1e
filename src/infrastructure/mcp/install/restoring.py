"""Installs what is recorded with a server where this machine lacks its files: at the first start of
the server here."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

from application.mcp.installer import McpInstallFailure, McpInstallFailureKind
from application.mcp.ports import McpFailure, McpFailureKind
from domain.ids import OrganizationId
from domain.mcp.server import McpServer

logger = logging.getLogger(__name__)

WAIT_S = 25.0
"""Longest wait of a connection; the installation continues without it."""
DEADLINE_S = 300.0
FIRST_PAUSE_S = 30.0
LONGEST_PAUSE_S = 900.0
_UNDER_WAY = "The MCP server is being installed on this machine."


class Restore(Protocol):
    async def __call__(self, server: McpServer, /) -> bool:
        """Install what is recorded. False while another process does. Raises McpInstallFailure."""


class RestoredInstallations:
    """Rules:
    - One attempt at a time for an installation and for an organization, `parallel` in all, each for
      `deadline_s` at most.
    - After a failure there is a pause, each twice as long as the one before. A new installation of
      the server has none.
    - A connection waits for a while; a later one finds the installation complete.
    """

    def __init__(
        self,
        restore: Restore,
        *,
        parallel: int = 2,
        wait_s: float = WAIT_S,
        deadline_s: float = DEADLINE_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._restore = restore
        self._deadline_s = deadline_s
        self._monotonic = monotonic
        self._of_organizations: WeakValueDictionary[OrganizationId, asyncio.Lock] = WeakValueDictionary()
        self._failed: dict[str, tuple[McpInstallFailure, float, float]] = {}  # by location: pause, and its end
        self._places = asyncio.Semaphore(parallel)
        self._wait_s = wait_s
        self._under_way: dict[str, asyncio.Task[bool]] = {}

    async def ready(self, server: McpServer) -> None:
        """Return once the files of the installed server are here. Raises McpFailure NOT_CONNECTED
        while they are being installed, NOT_INSTALLED if they cannot be."""
        try:
            self._check_pause(server)
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

    def _check_pause(self, server: McpServer) -> None:
        """Raises the failure of the last attempt until its pause is over."""
        assert server.installation is not None  # asked for installed servers only
        failed = self._failed.get(server.installation.location)
        if failed is not None and self._monotonic() < failed[2]:
            raise McpInstallFailure(failed[0].kind, failed[0].detail)

    async def _restored(self, server: McpServer) -> bool:
        own = self._of_organizations.setdefault(server.organization_id, asyncio.Lock())
        async with own, self._places:
            try:
                async with asyncio.timeout(self._deadline_s):
                    return await self._restore(server)
            except TimeoutError as exc:
                detail = f"The installation was not done after {self._deadline_s:g} seconds."
                raise McpInstallFailure(McpInstallFailureKind.TIMEOUT, detail) from exc

    def _remember(self, location: str, failure: McpInstallFailure) -> None:
        now = self._monotonic()
        last = self._failed.get(location)
        pause = FIRST_PAUSE_S if last is None else min(2 * last[1], LONGEST_PAUSE_S)
        recent = {place: each for place, each in self._failed.items() if now < each[2] + LONGEST_PAUSE_S}
        self._failed = {**recent, location: (failure, pause, now + pause)}

    def _over(self, server: McpServer, location: str, task: "asyncio.Task[bool]") -> None:
        del self._under_way[location]
        ids = {"organization_id": server.organization_id, "server_id": server.id, "server": server.config.slug}
        if task.cancelled():
            return
        failure = task.exception()  # connections that waited too long do not read it
        if isinstance(failure, McpInstallFailure):
            self._remember(location, failure)
            reason = {"failure": failure.kind.value, "detail": failure.detail}
            logger.warning("MCP server not installed on this machine", extra={**ids, **reason})
        elif failure is not None:
            logger.error("installing an MCP server on this machine failed", extra=ids, exc_info=failure)
        elif task.result():
            self._failed.pop(location, None)
            logger.info("MCP server installed on this machine", extra=ids)
