"""TellMissingGrants: tells the webhook of the inbox which MCP servers a person must authorize. One
per process."""

import asyncio
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from application.mcp.ports import ServerStatus
from application.mcp.server_status import needs_authorization
from application.system.lru import LruCache
from application.system.periodic import when_due
from domain.ids import McpServerId
from domain.mcp.server import McpServer

_LOOK_AGAIN_S = 60.0
_RETRY_S = 1.0
_REMEMBERED = 10_000


class MissingGrantNotices(Protocol):
    async def add(self, server: McpServer, *, at: datetime) -> None:
        """Store the notice that a person must authorize the server, unless it was stored for this
        version of the server and its newest grant, or the server is gone or was authorized after
        `at`."""
        ...


class TellMissingGrants:
    """Rules:
    - A server that has refused a request for want of a grant is noted in the process of the
      request, and told once; again after it was changed, or another grant has ended.
    - What cannot be stored is tried again, and holds up no other.
    """

    def __init__(self, *, notices: MissingGrantNotices) -> None:
        self._notices = notices
        self._found: dict[McpServerId, tuple[McpServer, datetime]] = {}
        self._told: LruCache[McpServerId, tuple[int, datetime]] = LruCache(_REMEMBERED)
        self._news = asyncio.Event()

    def changed(self, server: McpServer, status: ServerStatus) -> None:
        """Note the state of a server in this process."""
        if needs_authorization(server, status) and self._told.get(server.id) != (server.version, status.since):
            self._found[server.id] = (server, status.since)
            self._news.set()

    async def keep(self) -> None:
        """Tell until cancelled."""
        await when_due(self._step, task="missing-grants", retry_s=_RETRY_S, wait=self._noted)

    async def execute(self) -> None:
        """Tell what was noted. Raises what prevented some of it in the end."""
        failures: list[Exception] = []
        for server_id, noted in [*self._found.items()]:
            server, since = noted
            try:
                await self._notices.add(server, at=since)
            except Exception as error:  # noqa: BLE001  # raised below
                failures.append(error)
                continue
            self._told.put(server_id, (server.version, since))
            if self._found[server_id] is noted:
                del self._found[server_id]
        if failures:
            raise ExceptionGroup("notices of missing grants", failures)

    async def _step(self) -> float:
        self._news.clear()
        await self.execute()
        return _LOOK_AGAIN_S

    async def _noted(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._news.wait()
