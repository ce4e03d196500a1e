"""Circuit breaker for each server: opens after consecutive failures; calls then fail at once."""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import replace

from application.mcp.ports import (
    ConnectionScope,
    McpCall,
    McpConnections,
    McpFailure,
    McpFailureKind,
    McpReply,
    ProgressCallback,
    ServerState,
    ServerStatus,
)
from application.system.ports import Clock
from domain.ids import McpServerId, OrganizationId
from domain.mcp.breaker import BreakerSettings, BreakerState, CallOutcome, CircuitBreaker
from domain.mcp.catalog import McpCatalog
from domain.mcp.given_secrets import is_process_of_person
from domain.mcp.server import McpServer
from infrastructure.mcp.wrappers.shared_breakers import OpenBreaker, SharedBreakers
from infrastructure.mcp.wrappers.wrapped_connections import WrappedConnections

logger = logging.getLogger(__name__)

_OUTCOMES = {
    McpFailureKind.TIMEOUT: CallOutcome.FAILED,
    McpFailureKind.CONNECTION_LOST: CallOutcome.FAILED,
    McpFailureKind.NOT_CONNECTED: CallOutcome.FAILED,
    McpFailureKind.INVALID_REPLY: CallOutcome.FAILED,
    # A protocol error, or a reply that is too large, comes from a server that works.
    McpFailureKind.SERVER_ERROR: CallOutcome.ANSWERED,
    McpFailureKind.TOO_LARGE: CallOutcome.ANSWERED,
}
_COVERED_STATES = frozenset({ServerState.CONNECTED, ServerState.CONNECTING, ServerState.DISCONNECTED})

BreakerChanged = Callable[[McpServerId, BreakerState], None]
"""Called with the new state when a server's breaker changes."""


class CircuitBreakingConnections(WrappedConnections):
    """Rules:
    - The breaker opens after the failures that `settings` allow, and half-opens after a cool-down.
    - In the half-open state single calls probe the server; one success closes the breaker.
    - What a process of one person fails at tells nothing about those of others.
    - Listings always pass; a successful one ends the cool-down, as does a probe that tells nothing.
    - With `shared`, breakers open and close in all processes, failures of all processes count, and
      one process probes.
    """

    def __init__(
        self,
        connections: McpConnections,
        *,
        clock: Clock,
        settings: BreakerSettings | None = None,
        on_change: BreakerChanged | None = None,
        shared: SharedBreakers | None = None,
    ) -> None:
        super().__init__(connections)
        self._shared = shared
        if shared is not None:
            shared.changed, shared.failed = self._told_change, self._told_failures
        self._clock = clock
        self._on_change = on_change
        self._closed = CircuitBreaker(settings=settings or BreakerSettings())
        self._breakers: dict[McpServerId, CircuitBreaker] = {}

    async def call_tool(
        self, server: McpServer, scope: ConnectionScope, call: McpCall, on_progress: ProgressCallback | None = None
    ) -> McpReply:
        """Raises: McpFailure NOT_CONNECTED at once, with `retry_after_s`, while the breaker is
        open."""
        epoch = self._admit(server)
        if self._shared is not None and self._breakers[server.id].is_probed:
            hold_s = min(call.timeout_s, self._closed.settings.longest_pause_s)
            await self._claim_probe(self._shared, server, epoch, hold_s)
        outcome = CallOutcome.NEITHER
        try:
            reply = await self._connections.call_tool(server, scope, call, on_progress)
            outcome = CallOutcome.ANSWERED
            return reply
        except McpFailure as failure:
            if not is_process_of_person(server.acting_for(scope.person_id)):
                outcome = _OUTCOMES.get(failure.kind, CallOutcome.NEITHER)
            raise
        finally:
            self._settle(server, epoch, outcome)

    async def discover(self, server: McpServer, scope: ConnectionScope, *, timeout_s: float) -> McpCatalog:
        """List the tools; success ends the cool-down of the breaker."""
        catalog = await self._connections.discover(server, scope, timeout_s=timeout_s)
        if (breaker := self._breakers.get(server.id)) is not None:
            hastened = self._breakers[server.id] = breaker.hastened(self._clock.monotonic())
            if self._shared is not None and hastened is not breaker:
                self._let_probe(self._shared, server.id, hastened)
        return catalog

    def status(self, server: McpServer) -> ServerStatus:
        """The status, with state UNHEALTHY while the breaker is open."""
        status = self._connections.status(server)
        breaker = self._breakers.get(server.id, self._closed)
        if breaker.refused_for_s(self._clock.monotonic()) is None or status.state not in _COVERED_STATES:
            return status
        return replace(status, state=ServerState.UNHEALTHY, last_error=status.last_error or _open_breaker(breaker))

    def forgive(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        if (breaker := self._breakers.get(server_id)) is not None:
            self._breakers[server_id] = breaker.reset()
            self._tell(server_id, BreakerState.CLOSED)
        if self._shared is not None:
            self._shared.closed(server_id)
        self._connections.forgive(organization_id, server_id)

    async def forget(self, organization_id: OrganizationId, server_id: McpServerId) -> None:
        breaker = self._breakers.pop(server_id, self._closed)
        self._tell(server_id, BreakerState.CLOSED)
        if self._shared is not None and breaker.retry_at is not None:
            self._shared.closed(server_id)
        await self._connections.forget(organization_id, server_id)

    def _admit(self, server: McpServer) -> int:
        breaker = self._breakers.get(server.id, self._closed)
        if self._shared is not None and server.id not in self._breakers:
            self._breakers[server.id] = breaker
            self._shared.look(server.id)
        now = self._clock.monotonic()
        refused_for_s = breaker.refused_for_s(now)
        if refused_for_s is not None:
            raise _refused(breaker, refused_for_s)
        admitted = breaker.admitted(now)
        if admitted is not breaker:
            self._breakers[server.id] = admitted
        return admitted.epoch

    def _settle(self, server: McpServer, epoch: int, outcome: CallOutcome, *, is_told: bool = True) -> None:
        before = self._breakers.get(server.id, self._closed)
        after = before.settled(epoch, outcome, self._clock.monotonic())
        if after is before:
            return
        self._breakers[server.id] = after
        if self._shared is not None and is_told:
            self._share(self._shared, server.id, before, after)
        if after.state is not before.state:
            logger.log(
                logging.INFO if after.state is BreakerState.CLOSED else logging.WARNING,
                "circuit breaker of an MCP server changed",
                extra={
                    "organization_id": server.organization_id,
                    "server_id": server.id,
                    "server": server.config.slug,
                    "breaker": after.state.value,
                    "openings": after.openings,
                },
            )
            self._tell(server.id, after.state)

    async def _claim_probe(self, shared: SharedBreakers, server: McpServer, epoch: int, hold_s: float) -> None:
        """Raises: McpFailure NOT_CONNECTED if another process probes the server."""
        try:
            may_probe = await shared.may_probe(server.id, hold_s)
        except asyncio.CancelledError:
            self._settle(server, epoch, CallOutcome.NEITHER)
            raise  # It may have been claimed.
        if not may_probe:
            self._settle(server, epoch, CallOutcome.NEITHER, is_told=False)
            breaker = self._breakers.get(server.id, self._closed)
            raise _refused(breaker, breaker.refused_for_s(self._clock.monotonic()) or 0.0)

    def _share(
        self, shared: SharedBreakers, server_id: McpServerId, before: CircuitBreaker, after: CircuitBreaker
    ) -> None:
        if after.state is BreakerState.OPEN and after.openings != before.openings:
            pause_s = after.settings.pause_s(after.openings)
            shared.opened(server_id, OpenBreaker(openings=after.openings, pause_s=pause_s))
        elif after.state is BreakerState.OPEN and before.is_probed:
            self._let_probe(shared, server_id, after)  # The probe told nothing.
        elif after.state is BreakerState.CLOSED:
            if before.state is not BreakerState.CLOSED:
                shared.closed(server_id)
            elif after.failures != before.failures:
                shared.failures(server_id, after.failures)

    @staticmethod
    def _let_probe(shared: SharedBreakers, server_id: McpServerId, breaker: CircuitBreaker) -> None:
        shared.opened(server_id, OpenBreaker(openings=breaker.openings, pause_s=0.0))

    def _told_change(self, server_id: McpServerId, told: OpenBreaker | None) -> None:
        """Another process opened or closed the breaker."""
        before = self._breakers.get(server_id, self._closed)
        if told is not None:
            after = before.told_open(told.openings, self._clock.monotonic() + told.pause_s)
        elif before.retry_at is not None:
            after = before.reset()
        else:
            return
        self._breakers[server_id] = after
        self._tell(server_id, after.state)

    def _told_failures(self, server_id: McpServerId, failures: int) -> None:
        """Calls of another process failed, or one was answered."""
        if (before := self._breakers.get(server_id)) is not None:
            self._breakers[server_id] = before.told_failures(failures)

    def _tell(self, server_id: McpServerId, state: BreakerState) -> None:
        if self._on_change is not None:
            self._on_change(server_id, state)


def _refused(breaker: CircuitBreaker, refused_for_s: float) -> McpFailure:
    detail = f"{_open_breaker(breaker)} It is tried again in {max(1, math.ceil(refused_for_s))} s."
    return McpFailure(McpFailureKind.NOT_CONNECTED, detail, retry_after_s=refused_for_s)


def _open_breaker(breaker: CircuitBreaker) -> str:
    return f"The server failed {breaker.settings.failures} consecutive calls; its circuit breaker is open."
