"""Rate limits per server and per organization. Calls wait for their turn, or fail if it is too
late."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import TypeVar

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpReply,
    ProgressCallback,
)
from application.system.ports import Clock
from domain.ids import McpServerId, OrganizationId
from domain.mcp.server import McpServer
from domain.rate_limit import CallSchedule, RateLimit
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections

Key = TypeVar("Key", McpServerId, OrganizationId)


class PacedConnections(WrappedConnections):
    """Rules:
    - `every_organization` is the rate of each organization; None sets no limit.
    - A call takes a turn of its server first, then one of its organization: calls that wait for a
      server take no turn of the organization.
    - A cancelled call does not return its turn, so that the limits always hold.
    """

    def __init__(
        self,
        connections: McpConnections,
        *,
        clock: Clock,
        every_organization: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(connections)
        self._clock = clock
        self._sleep = sleep
        self._every_organization = every_organization
        self._servers: dict[McpServerId, CallSchedule] = {}
        self._organizations: dict[OrganizationId, CallSchedule] = {}

    def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> Coroutine[None, None, McpReply]:
        """Raises: McpFailure BUSY with `retry_after_s` if the call's turn is after its timeout."""
        if self._every_organization is None and server.config.rate_limit is None:
            return self._connections.call_tool(server, scope, call, on_progress)
        return self._call_in_turn(server, scope, call, on_progress)

    async def _call_in_turn(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None
    ) -> McpReply:
        if (of_server := server.config.rate_limit) is not None:
            wait_s = self._turn(self._servers, server.id, of_server, call, "The MCP server")
            if wait_s > 0:
                call = await self._waited(call, wait_s)
        if (of_organization := self._every_organization) is not None:
            who = "The MCP servers of the organization, taken together,"
            wait_s = self._turn(self._organizations, server.organization_id, of_organization, call, who)
            if wait_s > 0:
                call = await self._waited(call, wait_s)
        return await self._connections.call_tool(server, scope, call, on_progress)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        self._servers.pop(server_id, None)
        await self._connections.forget(organization_id, server_id)

    def _turn(self, schedules: dict[Key, CallSchedule], key: Key, limit: RateLimit, call: McpCall, who: str) -> float:
        """Take the next turn; returns the seconds until then. Raises McpFailure BUSY if that is
        after the timeout."""
        schedule = schedules.get(key)
        if schedule is None or schedule.limit != limit:
            schedule = CallSchedule(limit=limit)
        now = self._clock.monotonic()
        wait_s = schedule.wait_s(now)
        if wait_s >= call.timeout_s:
            detail = (
                f"{who} may be called {limit.calls} times per {limit.per_s:g} seconds; "
                f"the next call may go in {math.ceil(wait_s)} seconds. Nothing was sent."
            )
            raise McpFailure(McpFailureKind.BUSY, detail, retry_after_s=wait_s)
        schedules[key] = schedule.taken(now)
        return wait_s

    async def _waited(self, call: McpCall, wait_s: float) -> McpCall:
        """Wait for the turn; returns the call with its timeout reduced by the wait."""
        await self._sleep(wait_s)
        return replace(call, timeout_s=call.timeout_s - wait_s)
