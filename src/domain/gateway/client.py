"""Clients of older MCP versions: they send their settings once in a handshake and refer to it
later. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.errors import invalid
from domain.ids import GatewayClientId, GatewaySessionId, OrganizationId
from domain.json_value import JsonObject
from domain.mcp.log_level import LogLevel

MAX_SUBSCRIPTIONS = 100
"""Most resources that a client may subscribe to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayClient:
    """A client after its handshake: the negotiated version, and its `capabilities` in the
    protocol's form. `session_id` is the gateway session that the client uses."""

    id: GatewayClientId
    organization_id: OrganizationId
    session_id: GatewaySessionId
    version: str
    capabilities: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """What a client requested after its handshake.

    `log_level` None: the client gets no log messages. `subscriptions` holds resources by their
    names in the gateway. Nothing is sent to a client after `ended_at`.
    """

    log_level: LogLevel | None = None
    subscriptions: tuple[str, ...] = ()
    ended_at: datetime | None = None

    def with_log_level(self, level: LogLevel) -> "ClientSettings":
        return replace(self, log_level=level)

    def subscribed(self, uri: str) -> "ClientSettings":
        """Adds a subscription. Raises INVALID `too_many_subscriptions`."""
        if uri in self.subscriptions:
            return self
        if len(self.subscriptions) >= MAX_SUBSCRIPTIONS:
            detail = f"A client may subscribe to {MAX_SUBSCRIPTIONS} resources; unsubscribe from one first."
            raise invalid("too_many_subscriptions", detail)
        return replace(self, subscriptions=(*self.subscriptions, uri))

    def unsubscribed(self, uri: str) -> "ClientSettings":
        return replace(self, subscriptions=tuple(known for known in self.subscriptions if known != uri))

    def ended(self, at: datetime) -> "ClientSettings":
        """The settings of a client that has left: nothing is requested."""
        return ClientSettings(ended_at=self.ended_at or at)
