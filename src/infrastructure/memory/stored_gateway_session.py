"""A gateway session as the in-memory tables hold it."""

from dataclasses import dataclass, field

from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.session import GatewaySession
from domain.ids import ToolCallId


@dataclass(slots=True, kw_only=True)
class StoredGatewaySession:
    """A session with its ledger."""

    session: GatewaySession
    calls: dict[ToolCallId, tuple[GatewayCall, GatewaySettlement | None]] = field(default_factory=dict)
