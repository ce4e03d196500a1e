"""What clients of the gateway asked for since their handshakes, in memory."""

from collections.abc import Callable

from domain.errors import not_found
from domain.gateway.client import ClientSettings, GatewayClient
from domain.ids import GatewayClientId, OrganizationId
from tests.doubles.state import InMemoryState


class InMemoryGatewayClientStore:
    """The `GatewayClientStore` port over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state

    async def settings(self, organization_id: OrganizationId, client_id: GatewayClientId) -> ClientSettings:
        """What is stored of the client."""
        for stored in self._state.gateway_sessions.values():
            if stored.session.organization_id == organization_id and client_id in stored.clients:
                return stored.clients[client_id]
        return ClientSettings()

    async def change(
        self, client: GatewayClient, change: Callable[[ClientSettings], ClientSettings]
    ) -> ClientSettings | None:
        """Store what `change` makes of the client's settings."""
        stored = self._state.gateway_sessions.get(client.session_id)
        if stored is None:
            raise not_found("gateway session", client.session_id)
        present = stored.clients.get(client.id, ClientSettings())
        if present.ended_at is not None:
            return None
        changed = stored.clients[client.id] = change(present)
        return changed
