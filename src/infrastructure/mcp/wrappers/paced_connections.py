"""Rate limits: of each server that has one, and of each organization over all its servers. Calls beyond them wait for their
turn, or fail if that is too far away."""

import asyncio
import math
from collections.abc import Awaitable, Callable
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
    """`every_organization` is how often each may call, if there is a limit. A call takes the turn of its organization after
    that of its server, so that a server which makes calls wait takes none from the others. A turn that was given to a call
    which is then given up is lost, so that the limits hold whatever callers do."""

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

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """As the port says. Raises McpFailure BUSY, with `retry_after_s`, when the call's turn comes too late for it."""
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
        """As the port says."""
        self._servers.pop(server_id, None)
        await self._connections.forget(organization_id, server_id)

    def _turn(self, schedules: dict[Key, CallSchedule], key: Key, limit: RateLimit, call: McpCall, who: str) -> float:
        """In how many seconds it is the call's turn, which is taken. Raises McpFailure BUSY if that is too late for it."""
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
        """The call at its turn, with less time by what it waited."""
        await self._sleep(wait_s)
        return replace(call, timeout_s=call.timeout_s - wait_s)
