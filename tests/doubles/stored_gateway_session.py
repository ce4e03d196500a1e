"""A gateway session as the in-memory tables hold it."""

from dataclasses import dataclass, field

from domain.gateway.call import GatewayCall, GatewaySettlement
from domain.gateway.client import ClientSettings
from domain.gateway.note import GatewayNote
from domain.gateway.session import GatewaySession
from domain.ids import GatewayClientId, GatewayNoteId, ToolCallId


@dataclass(slots=True, kw_only=True)
class StoredGatewaySession:
    """A session with its ledger, what its clients asked for, and what processes leave for each
    other about its calls."""

    session: GatewaySession
    notes: dict[GatewayNoteId, GatewayNote] = field(default_factory=dict)
    calls: dict[ToolCallId, tuple[GatewayCall, GatewaySettlement | None]] = field(default_factory=dict)
    clients: dict[GatewayClientId, ClientSettings] = field(default_factory=dict)
