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
            turn = self._turn(server.id, of_server, call)
            if turn:
                call = await self._waited(turn, of_server, call)
        if (of_organization := self._every_organization) is not None:
            turn = self._turn(server.organization_id, of_organization, call)
            if turn:
                call = await self._waited(turn, of_organization, call)
        return await self._connections.call_tool(server, scope, call, on_progress)

    def _turn(self, counted: str, limit: RateLimit, call: McpCall) -> float | Awaitable[float]:
        """Take the next turn: the seconds until then. Raises McpFailure BUSY if that is after the
        timeout."""
        try:
            return self._rates.turn(((counted, limit),), call.timeout_s)
        except TooSoon as too_soon:
            raise self._busy(limit, too_soon) from None

    async def _waited(self, turn: float | Awaitable[float], limit: RateLimit, call: McpCall) -> McpCall:
        """Wait for the turn; returns the call with its timeout reduced by the wait. Raises as
        `_turn`."""
        began = self._clock.monotonic()
        try:
            wait_s = turn if isinstance(turn, float) else await turn
        except TooSoon as too_soon:
            raise self._busy(limit, too_soon) from None
        except ServiceError as error:
            detail = "Rate limits cannot be counted while the database is away. Nothing was sent."
            raise McpFailure(McpFailureKind.BUSY, detail, retry_after_s=1.0) from error
        if wait_s > 0:
            await self._sleep(wait_s)
        return replace(call, timeout_s=call.timeout_s - (self._clock.monotonic() - began))

    def _busy(self, limit: RateLimit, too_soon: TooSoon) -> McpFailure:
        # The organization's limit is one object.
        is_organizations = limit is self._every_organization
        who = "The MCP servers of the organization, taken together," if is_organizations else "The MCP server"
        detail = (
            f"{who} may be called {limit.calls} times per {limit.per_s:g} seconds; "
            f"the next call may go in {math.ceil(too_soon.wait_s)} seconds. Nothing was sent."
        )
        return McpFailure(McpFailureKind.BUSY, detail, retry_after_s=too_soon.wait_s)
