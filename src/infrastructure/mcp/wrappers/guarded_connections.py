"""The order in which a call passes the limits of its server and organization before it reaches the connection."""

from dataclasses import dataclass

from application.mcp.ports import McpConnections
from application.system.ports import Clock
from domain.mcp.breaker import BreakerSettings
from domain.rate_limit import RateLimit
from infrastructure.mcp.wrappers.bounded_connections import (
    MAX_ORGANIZATION_CALLS,
    MAX_WAITING,
    OrganizationBoundConnections,
    ServerBoundConnections,
)
from infrastructure.mcp.wrappers.breaking_connections import BreakerChanged, CircuitBreakingConnections
from infrastructure.mcp.wrappers.paced_connections import PacedConnections


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """What holds for every server alike, and for every organization; concurrency and rate of each server are its own
    settings."""

    breaker: BreakerSettings = BreakerSettings()
    waiting_per_server: int = MAX_WAITING
    calls_per_organization: int = MAX_ORGANIZATION_CALLS
    organization_rate: RateLimit | None = None


def guarded(
    connections: McpConnections, *, clock: Clock, limits: CallLimits, on_breaker: BreakerChanged | None = None
) -> McpConnections:
    """`connections` behind their limits, outermost first: a place at the server; its breaker, so that calls that waited
    for that place do not run into a server found broken meanwhile; its rate and the organization's; a place of the organization, last, so that
    a server which makes calls wait takes none from the others. `on_breaker` is told when a breaker changes."""
    connections = OrganizationBoundConnections(connections, max_calls=limits.calls_per_organization)
    connections = PacedConnections(connections, clock=clock, every_organization=limits.organization_rate)
    connections = CircuitBreakingConnections(connections, clock=clock, settings=limits.breaker, on_change=on_breaker)
    return ServerBoundConnections(connections, max_waiting=limits.waiting_per_server)
