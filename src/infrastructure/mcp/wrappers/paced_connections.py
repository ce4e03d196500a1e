"""Rate limits per server and per organization. Calls wait for their turn, or fail if it is too
late."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
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
from application.system.rates import Rates, TooSoon
from domain.errors import ServiceError
from domain.mcp.server import McpServer
from domain.rate_limit import RateLimit
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections


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
        rates: Rates,
        clock: Clock,
        every_organization: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(connections)
        self._rates = rates
        self._clock = clock
        self._sleep = sleep
        self._every_organization = every_organization

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
            call = await self._in_turn(server.id, of_server, call, "The MCP server")
        if (of_organization := self._every_organization) is not None:
            who = "The MCP servers of the organization, taken together,"
            call = await self._in_turn(server.organization_id, of_organization, call, who)
        return await self._connections.call_tool(server, scope, call, on_progress)

    async def _in_turn(self, counted: str, limit: RateLimit, call: McpCall, who: str) -> McpCall:
        """Wait for the call's turn; returns the call with its timeout reduced by the wait. Raises McpFailure BUSY if the
        turn is after the timeout."""
        began = self._clock.monotonic()
        try:
            turn = self._rates.turn(((counted, limit),), call.timeout_s)
            wait_s = turn if isinstance(turn, float) else await turn
        except TooSoon as too_soon:
            detail = (
                f"{who} may be called {limit.calls} times per {limit.per_s:g} seconds; "
                f"the next call may go in {math.ceil(too_soon.wait_s)} seconds. Nothing was sent."
            )
            raise McpFailure(McpFailureKind.BUSY, detail, retry_after_s=too_soon.wait_s) from None
        except ServiceError as error:
            detail = (
                f"{who} cannot be called now: its rate limit is unknown while the database is away. Nothing was sent."
            )
            raise McpFailure(McpFailureKind.BUSY, detail, retry_after_s=1.0) from error
        if wait_s > 0:
            await self._sleep(wait_s)
        waited_s = self._clock.monotonic() - began
        return replace(call, timeout_s=call.timeout_s - waited_s) if waited_s >= 0.001 else call
