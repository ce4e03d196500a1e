"""A gateway session as the in-memory tables hold it."""

from dataclasses import dataclass, field

from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.client import ClientSettings
from domain.gateway.session import GatewaySession
from domain.ids import GatewayClientId, ToolCallId


@dataclass(slots=True, kw_only=True)
class StoredGatewaySession:
    """A session with its ledger, and what its clients asked for."""

    session: GatewaySession
    calls: dict[ToolCallId, tuple[GatewayCall, GatewaySettlement | None]] = field(default_factory=dict)
    clients: dict[GatewayClientId, ClientSettings] = field(default_factory=dict)
