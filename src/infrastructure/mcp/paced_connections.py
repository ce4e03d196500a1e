"""A rate limit for each server that has one: calls beyond it wait for their turn, or fail if that is too far away."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

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
from domain.rate_limit import CallSchedule
from infrastructure.mcp.wrapped_connections import WrappedConnections


class PacedConnections(WrappedConnections):
    """A turn that was given to a call which is then given up is lost, so that the limit holds whatever callers do."""

    def __init__(
        self,
        connections: McpConnections,
        *,
        clock: Clock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(connections)
        self._clock = clock
        self._sleep = sleep
        self._schedules: dict[McpServerId, CallSchedule] = {}

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """As the port says. Raises McpFailure BUSY, with `retry_after_s`, when the call's turn comes too late for it."""
        limit = server.config.rate_limit
        if limit is None:
            return await self._connections.call_tool(server, scope, call, on_progress)
        schedule = self._schedules.get(server.id)
        if schedule is None or schedule.limit != limit:
            schedule = CallSchedule(limit=limit)
        now = self._clock.monotonic()
        wait_s = schedule.wait_s(now)
        if wait_s >= call.timeout_s:
            detail = (
                f"The MCP server may be called {limit.calls} times per {limit.per_s:g} seconds; "
                f"the next call may go in {math.ceil(wait_s)} seconds. Nothing was sent."
            )
            raise McpFailure(McpFailureKind.BUSY, detail, retry_after_s=wait_s)
        self._schedules[server.id] = schedule.taken(now)
        if wait_s > 0:
            await self._sleep(wait_s)
            call = replace(call, timeout_s=call.timeout_s - wait_s)
        return await self._connections.call_tool(server, scope, call, on_progress)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        """As the port says."""
        self._schedules.pop(server_id, None)
        await self._connections.forget(organization_id, server_id)
