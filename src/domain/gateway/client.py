"""Clients of the older generation of MCP, which shake hands once and say little of themselves afterwards. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.errors import invalid
from domain.ids import GatewayClientId, GatewaySessionId, OrganizationId
from domain.json_value import JsonObject
from domain.mcp.log_level import LogLevel

MAX_SUBSCRIPTIONS = 100
"""Resources that a client may be told of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayClient:
    """What a client said in its handshake: the version that was agreed on, and what it can do (`capabilities` as the protocol
    has them). `session_id` is of the gateway session that it reaches."""

    id: GatewayClientId
    organization_id: OrganizationId
    session_id: GatewaySessionId
    version: str
    capabilities: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What a client asked for since: log messages from a level on (None: none at all), and news of resources, by the names
    that it has for them. After `ended_at` it asks for nothing any more."""

    log_level: LogLevel | None = None
    subscriptions: tuple[str, ...] = ()
    ended_at: datetime | None = None

    def with_log_level(self, level: LogLevel) -> "ClientSettings":
        """From now on with messages from this level on."""
        return replace(self, log_level=level)

    def subscribed(self, uri: str) -> "ClientSettings":
        """With news of this resource, too. Raises INVALID `too_many_subscriptions`."""
        if uri in self.subscriptions:
            return self
        if len(self.subscriptions) >= MAX_SUBSCRIPTIONS:
            detail = f"A client may be told of {MAX_SUBSCRIPTIONS} resources; unsubscribe from one first."
            raise invalid("too_many_subscriptions", detail)
        return replace(self, subscriptions=(*self.subscriptions, uri))

    def unsubscribed(self, uri: str) -> "ClientSettings":
        """Without news of this resource."""
        return replace(self, subscriptions=tuple(known for known in self.subscriptions if known != uri))

    def ended(self, at: datetime) -> "ClientSettings":
        """Asking for nothing."""
        return ClientSettings(ended_at=self.ended_at or at)
