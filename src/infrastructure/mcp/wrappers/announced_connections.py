"""Announces releases and removals of MCP connections to all processes, and applies theirs."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Protocol

from application.mcp.ports import ConnectionScope, McpConnections
from domain.ids import GatewaySessionId, McpServerId, OrganizationId, RunId, ThreadId
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections

logger = logging.getLogger(__name__)

FORGET, RELEASE = "mcp-forget", "mcp-release"


class Announcements(Protocol):
    """Topics between processes."""

    def wake(self, *topics: str) -> None:
        """Send topics to the other processes."""
        ...

    def subscribe_prefix(self, word: str, hear: Callable[[str], None]) -> None:
        """Call `hear` with each topic from another process that begins with `word` and a colon."""
        ...


class AnnouncedConnections(WrappedConnections):
    """Wraps the connections of this process for use cases that change servers, secrets or sessions.
    - Executing a run needs no announcement: its connections are in the process that executes it.
    - The idle timeout ends connections whose announcement was lost with the database connection.
    """

    def __init__(self, connections: McpConnections, *, announcements: Announcements) -> None:
        super().__init__(connections)
        self._announcements = announcements
        self._tasks: set[asyncio.Task[None]] = set()
        announcements.subscribe_prefix(FORGET, self._forget)
        announcements.subscribe_prefix(RELEASE, self._release)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        await self._connections.forget(organization_id, server_id)
        self._announcements.wake(f"{FORGET}:{organization_id}:{server_id}")

    async def release(self, scope: ConnectionScope) -> None:
        await self._connections.release(scope)
        parts = (scope.organization_id, scope.thread_id, scope.run_id, scope.gateway_session_id)
        self._announcements.wake(":".join((RELEASE, *(part or "" for part in parts))))

    async def close(self) -> None:
        """Cancel the announcements in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _forget(self, topic: str) -> None:
        _, organization_id, server_id = topic.split(":")
        self._do(self._connections.forget(OrganizationId(organization_id), McpServerId(server_id)))

    def _release(self, topic: str) -> None:
        _, organization_id, thread_id, run_id, session_id = topic.split(":")
        scope = ConnectionScope(
            organization_id=OrganizationId(organization_id),
            thread_id=ThreadId(thread_id) if thread_id else None,
            run_id=RunId(run_id) if run_id else None,
            gateway_session_id=GatewaySessionId(session_id) if session_id else None,
        )
        self._do(self._connections.release(scope))

    def _do(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name="mcp-announced")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
