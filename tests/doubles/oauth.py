"""OAuth grants and pending authorizations in memory."""

from datetime import datetime

from domain.ids import McpServerId, OrganizationId
from infrastructure.mcp.oauth.grants import CLAIM_LASTS, Grant, PendingAuthorization
from tests.doubles.state import InMemoryState


class InMemoryOAuthStore:
    """The `OAuthStore` of the token broker, over shared in-memory tables."""

    def __init__(self, state: InMemoryState) -> None:
        self._state = state
        self.grants: dict[tuple[OrganizationId, McpServerId, str], Grant] = {}
        self._claims: dict[tuple[OrganizationId, McpServerId, str], tuple[str, datetime]] = {}

    async def load(self, organization_id: OrganizationId, server_id: McpServerId) -> tuple[Grant, ...]:
        """The server's grants, newest first."""
        found = [grant for key, grant in self.grants.items() if key[:2] == (organization_id, server_id)]
        return tuple(sorted(found, key=lambda grant: grant.obtained_at, reverse=True))

    async def save(self, organization_id: OrganizationId, server_id: McpServerId, grant: Grant) -> None:
        """Store, in place of the one of the same issuer."""
        server = self._state.servers.get(server_id)
        if server is not None and server.organization_id == organization_id:
            self.grants[organization_id, server_id, grant.issuer] = grant

    async def claim(
        self, organization_id: OrganizationId, server_id: McpServerId, issuer: str, claim: str, *, now: datetime
    ) -> Grant | None:
        """Take the sole right to use the refresh token."""
        key = (organization_id, server_id, issuer)
        grant, held = self.grants.get(key), self._claims.get(key)
        if grant is None or (held is not None and held[1] > now):
            return None
        self._claims[key] = (claim, now + CLAIM_LASTS)
        return grant

    async def release(self, organization_id: OrganizationId, server_id: McpServerId, claim: str) -> None:
        """The refresh token is not being used any more."""
        self._claims = {key: held for key, held in self._claims.items() if held[0] != claim}

    async def expect(self, state_hash: str, pending: PendingAuthorization, now: datetime) -> None:
        """Store what is asked for, and drop what has expired."""
        waiting = self._state.authorizations
        self._state.authorizations = {key: one for key, one in waiting.items() if one.expires_at >= now}
        self._state.authorizations[state_hash] = pending

    async def take(self, state_hash: str) -> PendingAuthorization | None:
        """What was asked for with this state, once."""
        return self._state.authorizations.pop(state_hash, None)
