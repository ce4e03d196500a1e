"""Order in which a call passes the limits of its server and organization."""

from dataclasses import dataclass

from application.mcp.ports import McpConnections
from application.system.ports import Clock
from application.system.rates import Rates
from application.system.shared_permits import SharedPermits
from domain.mcp.breaker import BreakerSettings
from domain.rate_limit import RateLimit
from infrastructure.mcp.wrappers.bounded_connections import (
    MAX_ORGANIZATION_CALLS,
    MAX_WAITING,
    Bulkheads,
    OrganizationBoundConnections,
    Places,
    ServerBoundConnections,
)
from infrastructure.mcp.wrappers.breaking_connections import BreakerChanged, CircuitBreakingConnections
from infrastructure.mcp.wrappers.paced_connections import PacedConnections
from infrastructure.mcp.wrappers.shared_breakers import SharedBreakers
from infrastructure.mcp.wrappers.shared_bulkheads import SharedBulkheads


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits for every server and every organization. Concurrency and rate per server are settings
    of the server."""

    breaker: BreakerSettings = BreakerSettings()
    waiting_per_server: int = MAX_WAITING
    calls_per_organization: int = MAX_ORGANIZATION_CALLS
    organization_rate: RateLimit | None = None


def guarded(
    connections: McpConnections,
    *,
    rates: Rates,
    permits: SharedPermits | None = None,
    breakers: SharedBreakers | None = None,
    clock: Clock,
    limits: CallLimits,
    on_breaker: BreakerChanged | None = None,
) -> McpConnections:
    """Wrap `connections` in their limits, outermost first:
    - a place at the server;
    - the server's breaker, so that calls that waited do not reach a server that failed meanwhile;
    - the rates of the server and of the organization;
    - a place of the organization, last: calls that wait for a server occupy no such place.

    `on_breaker` is called when a breaker changes. With `permits`, places are those of all
    processes, with `breakers` breakers.
    """

    def places(kind: str, max_waiting: int) -> Places:
        return Bulkheads(max_waiting) if permits is None else SharedBulkheads(kind, max_waiting, permits=permits)

    connections = OrganizationBoundConnections(
        connections, places=places("calls", MAX_ORGANIZATION_CALLS), max_calls=limits.calls_per_organization
    )
    connections = PacedConnections(connections, rates=rates, clock=clock, every_organization=limits.organization_rate)
    connections = CircuitBreakingConnections(
        connections, clock=clock, settings=limits.breaker, on_change=on_breaker, shared=breakers
    )
    return ServerBoundConnections(connections, places=places("calls", limits.waiting_per_server))
