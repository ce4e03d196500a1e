"""OAuth grants and pending authorizations in memory."""

from datetime import datetime

from domain.ids import McpServerId, OrganizationId
from infrastructure.mcp.oauth.grants import Grant, PendingAuthorization
from infrastructure.memory.state import InMemoryState


class InMemoryOAuthStore:
    """The `OAuthStore` of the token broker, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self.grants: dict[tuple[OrganizationId, McpServerId, str], Grant] = {}

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> tuple[Grant, ...]:
        """The server's grants, newest first."""
        found = [grant for key, grant in self.grants.items() if key[:2] == (organization_id, server_id)]
        return tuple(sorted(found, key=lambda grant: grant.obtained_at, reverse=True))

    async def save(self, organization_id: OrganizationId, server_id: McpServerId, grant: Grant) -> None:
        """Store, in place of the one of the same issuer."""
        server = self._state.servers.get(server_id)
        if server is not None and server.organization_id == organization_id:
            self.grants[organization_id, server_id, grant.issuer] = grant

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        """Store what is asked for, and drop what has expired."""
        waiting = self._state.authorizations
        self._state.authorizations = {key: one for key, one in waiting.items() if one.expires_at >= now}
        self._state.authorizations[state_hash] = pending

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        """What was asked for with this state, once."""
        return self._state.authorizations.pop(state_hash, None)
